// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds::parse_tls_test {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kSockets = "type.googleapis.com/envoy.extensions.transport_sockets.";
const std::string kPlace = "transport_socket.typed_config";
const std::string kCommon = kPlace + ".value.common_tls_context";

ParseOptions options() {
  ParseOptions made;
  made.certificate_providers = {"ids", "roots"};
  made.system_roots = true;
  return made;
}

ParseOptions with_proxies() {
  ParseOptions made = options();
  made.http_connect = true;
  return made;
}

ReceivedResource parse(const std::string& socket, const ParseOptions& made = options()) {
  return parse_cluster(
      serialise<ClusterProto>(
          R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + socket),
      made);
}

std::string error_in(const std::string& socket, const ParseOptions& made = options()) {
  const std::string error = error_of(parse(socket, made));
  const std::string prefix = R"(CDS resource "orders": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string socket(const std::string& type, const std::string& fields) {
  return "transport_socket { typed_config { [" + kSockets + type + "] { " + fields + " } } } ";
}

std::string tls(const std::string& common) {
  return socket("tls.v3.UpstreamTlsContext", "common_tls_context { " + common + " }");
}

std::string validation(const std::string& more) {
  return tls("validation_context { ca_certificate_provider_instance { instance_name: \"roots\" } " +
             more + " }");
}

UpstreamTls tls_of(const std::string& fields) {
  const auto found = value_of<Cluster>(parse(fields)).tls;
  REQUIRE(found.has_value());
  return *found;
}

const std::string kRoots = "{ instance_name: \"roots\" certificate_name: \"ca\" }";
const std::string kValid =
    "validation_context { ca_certificate_provider_instance { instance_name: \"roots\" } } ";

}  // namespace

TEST_CASE("parse_cluster: without a transport socket nothing is said of security",
          "[xds][parse][A29]") {
  CHECK(value_of<Cluster>(parse("")).tls == std::nullopt);
}

TEST_CASE("parse_cluster: root certificates come from a provider or from the system",
          "[xds][parse][A29]") {
  const CertificateProvider provider{"roots", "ca"};
  using Roots = decltype(UpstreamTls::roots);

  struct Row {
    const char* rule;
    std::string common;
    Roots roots;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"validation context",
       "validation_context { ca_certificate_provider_instance " + kRoots + " }",
       provider},
      {"A82: the system's", "validation_context { system_root_certs {} }", SystemRoots{}},
      {"a provider before the system's",
       "validation_context { system_root_certs {} ca_certificate_provider_instance " + kRoots +
           " }",
       provider},
      {"combined validation context",
       "combined_validation_context { default_validation_context { "
       "ca_certificate_provider_instance " +
           kRoots + " } }",
       provider},
      {"combined, the older spelling",
       "combined_validation_context { validation_context_certificate_provider_instance " + kRoots +
           " }",
       provider},
      {"combined, the older spelling before the system's",
       "combined_validation_context { default_validation_context { system_root_certs {} } "
       "validation_context_certificate_provider_instance " +
           kRoots + " }",
       provider},
      {"combined, the newer spelling before the older",
       "combined_validation_context { default_validation_context { "
       "ca_certificate_provider_instance " +
           kRoots +
           " } validation_context_certificate_provider_instance { instance_name: \"ids\" } }",
       provider},
      {"the oldest spelling",
       "validation_context_certificate_provider_instance " + kRoots,
       provider},
  }));
  DYNAMIC_SECTION(row.rule) {
    const UpstreamTls found = tls_of(tls(row.common));
    CHECK(found.roots == row.roots);
    CHECK(found.identity == std::nullopt);
    CHECK(found.subject_alt_names.empty());
  }
}

TEST_CASE("parse_cluster: the certificate that we show comes from a provider",
          "[xds][parse][A29]") {
  const CertificateProvider ids{"ids", "own"};
  const std::string own = " { instance_name: \"ids\" certificate_name: \"own\" } ";
  CHECK(tls_of(tls(kValid + "tls_certificate_provider_instance" + own)).identity == ids);
  CHECK(tls_of(tls(kValid + "tls_certificate_certificate_provider_instance" + own)).identity ==
        ids);
  CHECK(tls_of(tls(kValid + "tls_certificate_provider_instance" + own +
                   "tls_certificate_certificate_provider_instance { instance_name: \"roots\" } "
                   "tls_certificates {}"))
            .identity == ids);
}

TEST_CASE("parse_cluster: the server's names are matched as texts", "[xds][parse][A29][A63]") {
  using Kind = TextMatcher::Kind;
  CHECK(tls_of(validation(R"(match_subject_alt_names { exact: "a" }
                             match_subject_alt_names { prefix: "b" ignore_case: true }
                             match_subject_alt_names { suffix: "c" }
                             match_subject_alt_names { contains: "d" }
                             match_subject_alt_names { safe_regex { regex: "e.*" } }
                             match_typed_subject_alt_names { matcher { exact: "a" } })"))
            .subject_alt_names == std::vector<TextMatcher>{{Kind::kExact, "a", false},
                                                           {Kind::kPrefix, "b", true},
                                                           {Kind::kSuffix, "c", false},
                                                           {Kind::kContains, "d", false},
                                                           {Kind::kRegex, "e.*", false}});
}

TEST_CASE("parse_cluster: what makes TLS less than it was meant to be is an error",
          "[xds][parse][A29]") {
  const std::string unsupported = ": must not be set: it is not supported, found a value";
  const std::string context = kCommon + ".validation_context";

  struct Row {
    const char* rule;
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"no roots",
       tls(""),
       kCommon + ": must name a provider of root certificates, or the system's, found none"},
      {"no context at all",
       socket("tls.v3.UpstreamTlsContext", ""),
       kCommon + ": must name a provider of root certificates, or the system's, found none"},
      {"an identity without roots",
       tls("tls_certificate_provider_instance { instance_name: \"ids\" }"),
       kCommon + ": must name a provider of root certificates, or the system's, found none"},
      {"roots of an unknown provider",
       tls("validation_context { ca_certificate_provider_instance { instance_name: \"x\" } }"),
       context + ".ca_certificate_provider_instance.instance_name: must be one of the bootstrap's "
                 "certificate_providers (ids, roots), found \"x\""},
      {"an identity of an unknown provider",
       tls(kValid + "tls_certificate_provider_instance {}"),
       kCommon + ".tls_certificate_provider_instance.instance_name: must be one of the bootstrap's "
                 "certificate_providers (ids, roots), found \"\""},
      {"roots by SDS",
       tls("validation_context_sds_secret_config {}"),
       kCommon + ".validation_context_sds_secret_config" + unsupported},
      {"an identity inline",
       tls(kValid + "tls_certificates {}"),
       kCommon + ".tls_certificates" + unsupported},
      {"an identity by SDS",
       tls(kValid + "tls_certificate_sds_secret_configs {}"),
       kCommon + ".tls_certificate_sds_secret_configs" + unsupported},
      {"TLS parameters", tls(kValid + "tls_params {}"), kCommon + ".tls_params" + unsupported},
      {"a custom handshaker",
       tls(kValid + "custom_handshaker {}"),
       kCommon + ".custom_handshaker" + unsupported},
      {"SPKI hashes",
       validation("verify_certificate_spki: \"x\""),
       context + ".verify_certificate_spki" + unsupported},
      {"certificate hashes",
       validation("verify_certificate_hash: \"x\""),
       context + ".verify_certificate_hash" + unsupported},
      {"signed timestamps",
       validation("require_signed_certificate_timestamp { value: true }"),
       context + ".require_signed_certificate_timestamp" + unsupported},
      {"a revocation list", validation("crl {}"), context + ".crl" + unsupported},
      {"a custom validator",
       validation("custom_validator_config {}"),
       context + ".custom_validator_config" + unsupported},
      {"names by type alone",
       validation("match_typed_subject_alt_names { matcher { exact: \"a\" } }"),
       context + ".match_subject_alt_names: must be set: match_typed_subject_alt_names is not "
                 "supported, found none and 1 typed"},
      {"a matcher that says nothing",
       validation("match_subject_alt_names {}"),
       context +
           ".match_subject_alt_names[0].match_pattern: must be exact, prefix, suffix, contains or "
           "safe_regex, found none"},
      {"a pattern that is none",
       validation("match_subject_alt_names { safe_regex { regex: \"(\" } }"),
       context +
           ".match_subject_alt_names[0].safe_regex.regex: must be an RE2 pattern, found \"(\": "
           "missing ): ("},
      {"a NUL in a name",
       validation("match_subject_alt_names { exact: \"good.example\\000.evil\" }"),
       context + ".match_subject_alt_names[0]: must not contain a NUL, found "
                 "\"good.example\\000.evil\""},
      {"a NUL in a certificate's name",
       tls("validation_context { ca_certificate_provider_instance { instance_name: \"roots\" "
           "certificate_name: \"\\000\" } }"),
       context +
           ".ca_certificate_provider_instance.certificate_name: must not contain a NUL, found "
           "\"\\000\""},
      {"another socket",
       "transport_socket { typed_config { type_url: \"type.googleapis.com/x.RawBuffer\" } }",
       kPlace + ".type_url: must be UpstreamTlsContext, found \"x.RawBuffer\""},
      {"no socket", "transport_socket {}", kPlace + ": must be set, found none"},
      {"undecodable",
       "transport_socket { typed_config { type_url: \"" + kSockets +
           "tls.v3.UpstreamTlsContext\" value: \"\\377\" } }",
       kPlace + ".value: must be of type UpstreamTlsContext, found 1 bytes that are not"},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(error_in(row.fields) == row.error);
  }
}

TEST_CASE("parse_cluster: signed timestamps may be declined", "[xds][parse][A29]") {
  CHECK(error_in(validation("require_signed_certificate_timestamp { value: false }")).empty());
}

TEST_CASE("parse_cluster: where the bootstrap has no providers, none can be named",
          "[xds][parse][A29]") {
  CHECK(error_in(tls(kValid), ParseOptions{}) ==
        kCommon +
            ".validation_context.ca_certificate_provider_instance.instance_name: must be one of "
            "the bootstrap's certificate_providers (none), found \"roots\"");
}

TEST_CASE("parse_cluster: what cannot be had in TLS is not had in plaintext",
          "[xds][parse][A29][A82]") {
  CHECK(error_in(tls("validation_context { system_root_certs {} }"), ParseOptions{}) ==
        kCommon +
            ".validation_context.system_root_certs: must not be set: it is not supported, found a "
            "value");
}

TEST_CASE("parse_cluster: an HTTP CONNECT proxy is refused, whatever the environment allows",
          "[xds][parse][A86]") {
  const std::string type = "http_11_proxy.v3.Http11ProxyUpstreamTransport";
  const auto within = GENERATE(as<std::string>(),
                               "",
                               tls("validation_context { system_root_certs {} }"),
                               socket("http_11_proxy.v3.Http11ProxyUpstreamTransport", ""));
  const ParseOptions terms = GENERATE(options(), with_proxies());
  CHECK(error_in(socket(type, within), terms) ==
        kPlace +
            ".type_url: must be UpstreamTlsContext, found \"envoy.extensions.transport_sockets." +
            type + "\"; connections through HTTP CONNECT proxies are not supported");
}

}  // namespace signalbox::xds::parse_tls_test
