// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/known_resources.hpp"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/unit/xds/parse_support.hpp"

namespace signalbox::xds::known_resources_test {
namespace {

using envoy::service::discovery::v3::DiscoveryResponse;

const std::string kCluster(kClusterTypeUrl);

std::string cluster(const std::string& name, int connect_seconds = 5) {
  return absl::StrCat(
      "[",
      kCluster,
      "] { name: \"",
      name,
      "\" type: EDS eds_cluster_config { eds_config { self {} } } connect_timeout { seconds: ",
      connect_seconds,
      " } } ");
}

std::string bad(const std::string& name) {
  return absl::StrCat("[", kCluster, "] { name: \"", name, "\" } ");
}

std::string response(const std::vector<std::string>& resources) {
  std::string text = "version_info: \"7\" nonce: \"n3\" type_url: \"" + kCluster + "\" ";
  for (const std::string& resource : resources)
    text += "resources { " + resource + " } ";
  return serialise<DiscoveryResponse>(text);
}

/// The decoder of one ADS session, with the resources that the session knows.
struct Session {
  DecodedResponse decode(const std::vector<std::string>& resources) {
    auto result = decode_response(response(resources), options, &known);
    REQUIRE(result.ok());
    return *std::move(result);
  }

  ParseOptions options;
  KnownResources known;
};

const Cluster* value(const DecodedResponse& decoded, std::size_t place) {
  return &value_of<Cluster>(decoded.received.resources.at(place));
}

}  // namespace

TEST_CASE("known_resources: of 1,000 clusters the one that changed is parsed, the others are found",
          "[xds][parse][scale]") {
  constexpr std::size_t kClusters = 1'000;
  constexpr std::size_t kChanged = 500;
  std::vector<std::string> clusters;
  for (std::size_t number = 0; number < kClusters; ++number)
    clusters.push_back(cluster(absl::StrCat("c", number)));
  Session session;
  const DecodedResponse first = session.decode(clusters);

  clusters[kChanged] = cluster(absl::StrCat("c", kChanged), 6);
  const DecodedResponse second = session.decode(clusters);

  std::size_t found = 0;
  for (std::size_t place = 0; place < kClusters; ++place)
    found += value(first, place) == value(second, place) ? 1 : 0;
  CHECK(found == kClusters - 1);
  CHECK(value(second, kChanged)->connect_timeout == std::chrono::seconds(6));
  CHECK(second.received.resources.at(7).name == "c7");
  CHECK(second.received.resources.at(7).bytes == first.received.resources.at(7).bytes);
}

TEST_CASE("known_resources: an error is told again, and beside what is known",
          "[xds][parse][scale][R1][A46]") {
  Session session;
  const DecodedResponse first = session.decode({cluster("a"), bad("b")});
  REQUIRE_FALSE(first.nack_detail.empty());

  const DecodedResponse second = session.decode({cluster("a"), bad("b")});

  CHECK(second.nack_detail == first.nack_detail);
  CHECK(value(second, 0) == value(first, 0));
}

TEST_CASE("known_resources: only the last response of a type is known", "[xds][parse][scale][R2]") {
  Session session;
  const DecodedResponse first = session.decode({cluster("a"), cluster("b")});
  session.decode({cluster("b")});

  const DecodedResponse third = session.decode({cluster("a"), cluster("b")});

  CHECK(value(third, 0) != value(first, 0));
  CHECK(value(third, 1) == value(first, 1));
}

TEST_CASE("known_resources: a name that occurs twice is refused though both are known",
          "[xds][parse][scale]") {
  Session session;
  session.decode({cluster("a")});

  const DecodedResponse again = session.decode({cluster("a"), cluster("a")});

  CHECK(error_of(again.received.resources.at(0)).find("found more than once") != std::string::npos);
}

TEST_CASE("known_resources: under other options everything is parsed again",
          "[xds][parse][scale][A75-8]") {
  Session session;
  const DecodedResponse first = session.decode({cluster("a")});

  session.options.keep_aggregate_lb_policy = true;
  const DecodedResponse second = session.decode({cluster("a")});

  CHECK(value(second, 0) != value(first, 0));
  CHECK(value(session.decode({cluster("a")}), 0) == value(second, 0));
}

TEST_CASE("known_resources: repeated resources share the budget of patterns with new ones",
          "[xds][parse][limits]") {
  const auto routes = [](const std::string& name, const std::string& route) {
    return absl::StrCat("resources { [",
                        std::string(kRouteConfigurationTypeUrl),
                        "] { name: \"",
                        name,
                        "\" virtual_hosts { domains: \"*\" routes { ",
                        route,
                        " } } } } ");
  };
  const auto in_path = [](const std::string& pattern) {
    return "match { safe_regex { regex: \"" + pattern + "\" } } route { cluster: \"c\" }";
  };
  const std::string old = GENERATE_COPY(
      in_path("/a.*"),
      "match { prefix: \"\" headers { name: \"x\" string_match { safe_regex { regex: \"a\" } } } } "
      "route { cluster: \"c\" }",
      "match { prefix: \"\" } route { cluster: \"c\" hash_policy { header { header_name: \"x\" "
      "regex_rewrite { pattern { regex: \"a\" } substitution: \"b\" } } } }");
  INFO(old);
  const auto response = [](const std::string& resources) {
    return serialise<DiscoveryResponse>(
        absl::StrCat("version_info: \"7\" nonce: \"n3\" type_url: \"",
                     std::string(kRouteConfigurationTypeUrl),
                     "\" ",
                     resources));
  };
  ParseOptions options;
  options.limits.max_regexes = 1;
  KnownResources known;
  REQUIRE(decode_response(response(routes("old", old)), options, &known)->nack_detail.empty());

  const auto decoded = decode_response(
      response(routes("new", in_path("/b.*")) + routes("old", old)), options, &known);

  REQUIRE(decoded.ok());
  CHECK(decoded->received.resources.at(0).resource.ok());
  CHECK(decoded->received.resources.at(1).rejection ==
        Rejection{RejectionReason::kLimit, "max_regexes"});
}

namespace {

/// A way to write a pattern into a resource.
struct PatternPlace {
  absl::string_view type_url;
  std::string before;  ///< The fields before the pattern. NAME stands for the resource's name.
  std::string after;
};

const std::string kManager =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

PatternPlace in_listener() {
  return {kListenerTypeUrl,
          "name: \"NAME\" api_listener { api_listener { [type.googleapis.com/" + kManager +
              "] { http_filters { name: \"router\" typed_config { [type.googleapis.com/"
              "envoy.extensions.filters.http.router.v3.Router] {} } } route_config { "
              "virtual_hosts { domains: \"*\" routes { route { cluster: \"c\" } match { "
              "safe_regex { regex: \"",
          "\" } } } } } } } }"};
}

PatternPlace in_cluster() {
  return {kClusterTypeUrl,
          "name: \"NAME\" type: EDS eds_cluster_config { eds_config { ads {} } } "
          "transport_socket { typed_config { [type.googleapis.com/"
          "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext] { common_tls_context { "
          "validation_context { ca_certificate_provider_instance { instance_name: \"roots\" } "
          "match_subject_alt_names { safe_regex { regex: \"",
          "\" } } } } } } }"};
}

}  // namespace

TEST_CASE("known_resources: repeated patterns of a listener or a cluster count, and once",
          "[xds][parse][limits]") {
  const PatternPlace place = GENERATE(in_listener(), in_cluster());
  CAPTURE(place.type_url);
  const auto resource = [&](const std::string& name, const std::string& pattern) {
    return absl::StrCat("resources { [",
                        place.type_url,
                        "] { ",
                        absl::StrReplaceAll(place.before, {{"NAME", name}}),
                        pattern,
                        place.after,
                        " } } ");
  };
  ParseOptions options;
  options.certificate_providers = {"roots"};
  options.limits.max_regexes = 1;
  KnownResources known;
  const auto decode = [&](const std::string& resources) {
    const auto decoded = decode_response(serialise<DiscoveryResponse>(absl::StrCat(
                                             "type_url: \"", place.type_url, "\" ", resources)),
                                         options,
                                         &known);
    REQUIRE(decoded.ok());
    return decoded->received.resources;
  };
  const std::string old = resource("old", "a");
  REQUIRE(decode(old).at(0).resource.ok());
  const Rejection beyond{RejectionReason::kLimit, "max_regexes"};

  SECTION("before a new pattern") {
    const auto received = decode(old + resource("new", "b"));
    CHECK(received.at(0).resource.ok());
    CHECK(received.at(1).rejection == beyond);
  }
  SECTION("after a new pattern") {
    const auto received = decode(resource("new", "b") + old);
    CHECK(received.at(0).resource.ok());
    CHECK(received.at(1).rejection == beyond);
  }
  SECTION("not beside the same pattern") {
    const auto received = decode(old + resource("new", "a"));
    CHECK(received.at(0).resource.ok());
    CHECK(received.at(1).resource.ok());
  }
}

}  // namespace signalbox::xds::known_resources_test
