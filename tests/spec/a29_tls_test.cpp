// SPDX-License-Identifier: Apache-2.0
//
// gRFC A29, the client's part, in the document's order: a cluster's transport_socket, the
// bootstrap's certificate providers, and the check of the names in a server's certificate.
// tests/e2e/runtime_tls_test has the handshakes, and shows that a cluster with TLS sends no call in
// plaintext. tests/unit/actors/cluster_credentials_test has certificate files that change.

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/subchannel/peer_names.hpp"
#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/bootstrap.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox {
namespace {

using Catch::Matchers::Contains;
using ClusterProto = envoy::config::cluster::v3::Cluster;
using lb::PeerNames;

const char* const kBootstrap = R"({
  "xds_servers": [{"server_uri": "cp:1", "channel_creds": [{"type": "insecure"}]}],
  "certificate_providers": {
    "spiffe": {"plugin_name": "file_watcher",
               "config": {"certificate_file": "/certs/own.pem",
                          "private_key_file": "/certs/own.key",
                          "ca_certificate_file": "/certs/ca.pem",
                          "refresh_interval": "60s"}},
    "roots": {"plugin_name": "file_watcher", "config": {"ca_certificate_file": "/certs/ca.pem"}},
    "mint": {"plugin_name": "mesh_ca", "config": {}}}})";

xds::Bootstrap bootstrap() {
  auto parsed = xds::parse_bootstrap(kBootstrap, "test");
  REQUIRE(parsed.ok());
  return *std::move(parsed);
}

ClusterProto proto_of(const std::string& more) {
  return xds::from_text<ClusterProto>(
      R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + more);
}

ReceivedResource received(const std::string& bytes) {
  xds::ParseOptions options;
  for (const auto& [name, files] : bootstrap().certificate_providers)
    options.certificate_providers.insert(name);
  return xds::parse_cluster(bytes, options);
}

ReceivedResource cluster(const std::string& more) {
  return received(proto_of(more).SerializeAsString());
}

// Serialised fields for tests to append: the linked protobuf messages lack these two fields.
const std::string kSni("\x12\x01s", 3);
const std::string kSocketMatches("\xda\x02\x00", 3);

std::string socket(const std::string& context) {
  return absl::StrCat(
      "transport_socket { typed_config { "
      "[type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext] { ",
      context,
      " } } } ");
}

std::string tls(const std::string& common) {
  return socket(absl::StrCat("common_tls_context { ", common, " }"));
}

std::string instance(const std::string& name) {
  return absl::StrCat(" { instance_name: \"", name, "\" } ");
}

const std::string kRoots = "validation_context_certificate_provider_instance" + instance("roots");
const std::string kOwn = "tls_certificate_certificate_provider_instance" + instance("spiffe");

std::optional<UpstreamTls> security(const std::string& more) {
  return xds::value_of<Cluster>(cluster(more)).tls;
}

std::string names(const std::string& matchers) {
  return tls(absl::StrCat("combined_validation_context { default_validation_context { ",
                          matchers,
                          " } ",
                          kRoots,
                          " } "));
}

// Whether the cluster accepts a server with these names.
bool allows(const std::string& matchers, const PeerNames& of_server) {
  return lb::PeerNameCheck(security(names(matchers)).value().subject_alt_names)
      .check(of_server)
      .ok();
}

std::string alt_name(const std::string& matcher) {
  return absl::StrCat("match_subject_alt_names { ", matcher, " } ");
}

}  // namespace

SCENARIO("A29: the fallback credentials are for clusters of which nothing is said", "[spec][A29]") {
  THEN("a cluster without a transport socket has no security of its own") {
    CHECK(security("") == std::nullopt);
  }
  THEN("what is wrong is an error: no cluster comes of it, and nobody connects") {
    const std::string broken = GENERATE_COPY(values<std::string>({
        "transport_socket {}",
        "transport_socket { typed_config { type_url: \"type.googleapis.com/x.RawBuffer\" } }",
        socket(""),
        tls(""),
        tls(kOwn),
        tls("validation_context_certificate_provider_instance" + instance("unheard")),
        names(alt_name("safe_regex { regex: \"(\" }")),
    }));
    const ReceivedResource resource = cluster(broken);
    CHECK_FALSE(resource.resource.ok());
    CHECK_THAT(xds::error_of(resource), Contains("CDS resource \"orders\": transport_socket"));
  }
}

SCENARIO("A29: the cluster's transport socket holds the TLS of all its connections",
         "[spec][A29]") {
  GIVEN("a socket of type UpstreamTlsContext") {
    const auto common = security(tls(kRoots));
    THEN("its common_tls_context is read") {
      CHECK(common.has_value());
    }
    THEN("its other fields are ignored") {
      ClusterProto proto = proto_of(tls(kRoots));
      proto.mutable_transport_socket()->mutable_typed_config()->mutable_value()->append(kSni);
      CHECK(xds::value_of<Cluster>(received(proto.SerializeAsString())).tls == common);
    }
  }
  THEN("transport_socket_matches are not read") {
    const std::string bytes = proto_of("").SerializeAsString() + kSocketMatches;
    CHECK(xds::value_of<Cluster>(received(bytes)).tls == std::nullopt);
  }
}

SCENARIO("A29: certificates come from the provider instances that the context names",
         "[spec][A29]") {
  const CertificateProvider roots{"roots", ""};
  const CertificateProvider own{"spiffe", ""};
  using Roots = decltype(UpstreamTls::roots);

  GIVEN("TLS: root certificates alone") {
    THEN("they are those of validation_context_certificate_provider_instance") {
      const auto found = security(tls(kRoots)).value();
      CHECK(found.roots == Roots(roots));
      CHECK(found.identity == std::nullopt);
    }
    THEN("or of the one in the combined_validation_context") {
      const auto found = security(tls("combined_validation_context { " + kRoots + " }")).value();
      CHECK(found.roots == Roots(roots));
      CHECK(found.identity == std::nullopt);
    }
  }
  GIVEN("mTLS: a certificate of ours, too") {
    THEN("it is that of tls_certificate_certificate_provider_instance") {
      const auto found = security(tls(kRoots + kOwn)).value();
      CHECK(found.roots == Roots(roots));
      CHECK(found.identity == own);
    }
  }
  GIVEN("nobody to say what a server's certificate is to be checked by") {
    THEN("the cluster is refused, and the text says what it lacks") {
      CHECK_THAT(xds::error_of(cluster(tls(kOwn))),
                 Contains("common_tls_context: must name a provider of root certificates"));
    }
  }
}

SCENARIO("A29: SPIFFE identities are names of a certificate", "[spec][A29]") {
  const std::string orders = alt_name("exact: \"spiffe://prod.example/ns/orders\"");
  CHECK(allows(orders, {{}, {"spiffe://prod.example/ns/orders"}}));
  CHECK_FALSE(allows(orders, {{}, {"spiffe://prod.example/ns/billing"}}));
  CHECK_FALSE(allows(orders, {{"prod.example"}, {}}));
}

SCENARIO("A29: the bootstrap says what an instance is", "[spec][A29]") {
  const auto providers = bootstrap().certificate_providers;
  GIVEN("instances of the plugin file_watcher") {
    THEN("they have the files and the interval of its config") {
      CHECK(providers.at("spiffe") ==
            xds::CertificateFiles{
                "/certs/ca.pem", "/certs/own.pem", "/certs/own.key", std::chrono::seconds(60)});
      CHECK(providers.at("roots").certificate_file.empty());
    }
  }
  GIVEN("an instance of a plugin that we have not") {
    THEN("the bootstrap is valid, and a cluster that names the instance is not") {
      CHECK(providers.count("mint") == 0);
      CHECK_THAT(xds::error_of(cluster(
                     tls("validation_context_certificate_provider_instance" + instance("mint")))),
                 Contains("must be one of the bootstrap's certificate_providers (roots, spiffe), "
                          "found \"mint\""));
    }
  }
  GIVEN("a config without any file") {
    THEN("it is refused with the name of the instance") {
      const auto refused = xds::parse_bootstrap(
          R"({"xds_servers": [{"server_uri": "cp:1", "channel_creds": [{"type": "insecure"}]}],
              "certificate_providers": {"a": {"plugin_name": "file_watcher", "config": {}}}})",
          "test");
      REQUIRE_FALSE(refused.ok());
      CHECK_THAT(std::string(refused.status().message()),
                 Contains("certificate_providers.\"a\".config: expected a ca_certificate_file or a "
                          "certificate_file"));
    }
  }
}

SCENARIO("A29: the server is authorised by its subject alternative names", "[spec][A29][A63]") {
  const PeerNames server{{"orders.example"}, {"spiffe://prod.example/ns/orders"}};
  GIVEN("no match_subject_alt_names") {
    THEN("any name does, and none") {
      CHECK(allows("", server));
      CHECK(allows("", {}));
    }
  }
  GIVEN("one matcher") {
    THEN("it has the semantics of StringMatcher") {
      CHECK(allows(alt_name("exact: \"spiffe://prod.example/ns/orders\""), server));
      CHECK_FALSE(allows(alt_name("exact: \"spiffe://prod.example\""), server));
      CHECK(allows(alt_name("prefix: \"spiffe://prod.example/\""), server));
      CHECK_FALSE(allows(alt_name("prefix: \"prod.example/\""), server));
      CHECK(allows(alt_name("suffix: \"/orders\""), server));
      CHECK_FALSE(allows(alt_name("suffix: \"/ns\""), server));
      CHECK(allows(alt_name("contains: \"/ns/\""), server));
      CHECK_FALSE(allows(alt_name("contains: \"/sa/\""), server));
      CHECK(allows(alt_name("safe_regex { regex: \"spiffe://[^/]*/ns/orders\" }"), server));
      CHECK_FALSE(allows(alt_name("safe_regex { regex: \"spiffe://[^/]*\" }"), server));
      CHECK(allows(alt_name("prefix: \"SPIFFE://\" ignore_case: true"), server));
      CHECK_FALSE(allows(alt_name("prefix: \"SPIFFE://\""), server));
    }
    THEN("where it is exact, a DNS name counts as one") {
      CHECK(allows(alt_name("exact: \"ORDERS.example\""), server));
      CHECK(allows(alt_name("exact: \"orders.example\""), {{"*.example"}, {}}));
      CHECK_FALSE(allows(alt_name("exact: \"a.orders.example\""), {{"*.example"}, {}}));
    }
    THEN("a server without names is no server of ours") {
      CHECK_FALSE(allows(alt_name("contains: \"\""), {}));
    }
  }
  GIVEN("several matchers, or several names") {
    THEN("one match is enough") {
      CHECK(allows(alt_name("exact: \"a\"") + alt_name("suffix: \".example\""), server));
      CHECK_FALSE(allows(alt_name("exact: \"a\"") + alt_name("exact: \"b\""), server));
    }
  }
  GIVEN("a server that is refused") {
    THEN("the text says its names, and what was asked for") {
      const lb::PeerNameCheck check(security(names(alt_name("exact: \"a\"")))->subject_alt_names);
      CHECK(check.check(server) ==
            absl::UnauthenticatedError(
                "the server's certificate has \"orders.example\", "
                "\"spiffe://prod.example/ns/orders\", and match_subject_alt_names asks for exact "
                "\"a\""));
    }
  }
}

}  // namespace signalbox
