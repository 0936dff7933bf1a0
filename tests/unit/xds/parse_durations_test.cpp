// SPDX-License-Identifier: Apache-2.0
//
// The Duration fields of clusters, routes and listeners that are read have the same valid range
// (A75: "as with all Duration fields"). Health checks and LB policies have tests elsewhere.
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/parse_options.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/parse_resource.hpp"

namespace signalbox::xds::parse_durations_test {
namespace {

const std::string kApi = "type.googleapis.com/envoy.";
const std::string kHcm =
    kApi + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

// A resource with the placeholder D in one Duration field, and that field's path.
struct Place {
  std::string path;
  std::string text;
  std::string (*bytes_of)(const std::string& text);
  ResourceType type;
};

Place cluster(const std::string& path, const std::string& fields) {
  return {path,
          "name: \"r\" type: EDS eds_cluster_config { eds_config { ads {} } } " + fields,
          serialise<envoy::config::cluster::v3::Cluster>,
          ResourceType::kCluster};
}

Place routes(const std::string& path, const std::string& action) {
  return {"virtual_hosts[0].routes[0].route." + path,
          "name: \"r\" virtual_hosts { domains: \"*\" routes { match { prefix: \"\" } route { "
          "cluster: \"c\" " +
              action + " } } }",
          serialise<envoy::config::route::v3::RouteConfiguration>,
          ResourceType::kRouteConfig};
}

Place listener(const std::string& path, const std::string& manager) {
  return {"api_listener.api_listener." + path,
          "name: \"r\" api_listener { api_listener { [" + kHcm +
              "] { rds { config_source { ads {} } route_config_name: \"r\" } " + manager +
              " http_filters { name: \"router\" typed_config { [" + kApi +
              "extensions.filters.http.router.v3.Router] {} } } } } }",
          serialise<envoy::config::listener::v3::Listener>,
          ResourceType::kListener};
}

Place filter(const std::string& path, const std::string& config) {
  return listener("http_filters[0].typed_config.value." + path,
                  "http_filters { name: \"it\" typed_config { " + config + " } }");
}

ReceivedResource parse(const Place& place, const std::string& duration) {
  return parse_resource(
      place.type,
      std::string(type_url_of(place.type)),
      place.bytes_of(absl::StrReplaceAll(place.text, {{"{ D }", "{ " + duration + " }"}})),
      all_parse_options());
}

}  // namespace

TEST_CASE("durations: each that is read has the same range",
          "[xds][parse][A75-19][A75-20][A75-23][A31-29][A33][A44][A50][A55-11]") {
  const auto place = GENERATE(values<Place>({
      cluster("connect_timeout", "connect_timeout { D }"),
      cluster("upstream_config.typed_config.value.common_http_protocol_options.idle_timeout",
              "upstream_config { typed_config { [" + kApi +
                  "extensions.upstreams.http.v3.HttpProtocolOptions] { "
                  "common_http_protocol_options { idle_timeout { D } } } } }"),
      cluster("outlier_detection.interval", "outlier_detection { interval { D } }"),
      cluster("outlier_detection.base_ejection_time",
              "outlier_detection { base_ejection_time { D } }"),
      cluster("outlier_detection.max_ejection_time",
              "outlier_detection { max_ejection_time { D } }"),
      routes("max_stream_duration.max_stream_duration",
             "max_stream_duration { max_stream_duration { D } }"),
      routes("max_stream_duration.grpc_timeout_header_max",
             "max_stream_duration { grpc_timeout_header_max { D } }"),
      routes("timeout", "timeout { D }"),
      routes("retry_policy.retry_back_off.base_interval",
             "retry_policy { retry_back_off { base_interval { D } } }"),
      routes("retry_policy.retry_back_off.max_interval",
             "retry_policy { retry_back_off { base_interval { nanos: 1 } max_interval { D } } }"),
      listener("common_http_protocol_options.max_stream_duration",
               "common_http_protocol_options { max_stream_duration { D } }"),
      filter("delay.fixed_delay",
             "[" + kApi +
                 "extensions.filters.http.fault.v3.HTTPFault] { delay { fixed_delay { D } } }"),
      filter("session_state.typed_config.value.cookie.ttl",
             "[" + kApi +
                 "extensions.filters.http.stateful_session.v3.StatefulSession] { session_state { "
                 "typed_config { [" +
                 kApi +
                 "extensions.http.stateful_session.cookie.v3.CookieBasedSessionState] { cookie { "
                 "name: \"s\" ttl { D } } } } } }"),
  }));

  DYNAMIC_SECTION(place.path) {
    for (const char* good :
         {"seconds: 1", "nanos: 999999999", "seconds: 315576000000 nanos: 999999999"}) {
      INFO(good << ": " << error_of(parse(place, good)));
      CHECK(parse(place, good).resource.ok());
    }
    for (const auto& [bad, error] : {
             std::pair{"seconds: -1", ".seconds: must be in [0, 315576000000], found -1"},
             std::pair{"seconds: 315576000001",
                       ".seconds: must be in [0, 315576000000], found 315576000001"},
             std::pair{"nanos: -1", ".nanos: must be in [0, 999999999], found -1"},
             std::pair{"seconds: 1 nanos: 1000000000",
                       ".nanos: must be in [0, 999999999], found 1000000000"},
         }) {
      CHECK(error_of(parse(place, bad)) ==
            absl::StrCat(to_string(place.type), " resource \"r\": ", place.path, error));
    }
  }
}

TEST_CASE("durations: one that nothing is done with is not looked at", "[xds][parse][A31-23]") {
  CHECK(parse(routes("max_stream_duration.grpc_timeout_header_offset",
                     "max_stream_duration { grpc_timeout_header_offset { D } }"),
              "seconds: -1")
            .resource.ok());
}

}  // namespace signalbox::xds::parse_durations_test
