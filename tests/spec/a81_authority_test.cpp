// SPDX-License-Identifier: Apache-2.0
//
// gRFC A81 in the document's order: how the bootstrap, the environment, routes and endpoints decide
// the :authority of a call. tests/e2e/runtime_authority_test shows the :authority at a backend, and
// that the application's own choice has precedence.

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/router_fixture.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/bootstrap.hpp"
#include "xds/client/client_options.hpp"
#include "xds/depend/leaf_endpoints.hpp"
#include "xds/depend/virtual_host.hpp"
#include "xds/parse/endpoints.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/route_config.hpp"

namespace signalbox {
namespace {

using Environment = std::map<std::string, std::string>;

const Environment kOn{{"GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE", "true"}};
const std::string kTrusted = "\"trusted_xds_server\"";
const std::string kRewrite = "auto_host_rewrite { value: true }";

// The options for resources of a bootstrap's only server, which has these server_features.
xds::ParseOptions options_of(const std::string& features, const Environment& environment) {
  const auto bootstrap = xds::parse_bootstrap(
      absl::StrCat("{\"xds_servers\": [{\"server_uri\": \"cp:1\", \"channel_creds\": [{\"type\": "
                   "\"insecure\"}], \"server_features\": [",
                   features,
                   "]}]}"),
      "test");
  REQUIRE(bootstrap.ok());
  return xds::parse_options_from(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      xds::client_options(*bootstrap).servers.at(0).trusted);
}

std::shared_ptr<const RouteConfig> routes(const std::string& action,
                                          const xds::ParseOptions& options) {
  const std::string text = absl::StrCat(
      "name: \"routes\" virtual_hosts { domains: \"*\" routes { match { prefix: \"\" } route { "
      "cluster: \"orders\" ",
      action,
      " } } }");
  const auto resource = xds::parse_route_config(
      xds::serialise<envoy::config::route::v3::RouteConfiguration>(text), options);
  return std::make_shared<const RouteConfig>(xds::value_of<RouteConfig>(resource));
}

bool rewrites(const std::string& action,
              const std::string& features = kTrusted,
              const Environment& environment = kOn) {
  const auto config = routes(action, options_of(features, environment));
  return std::get<ForwardAction>(config->virtual_hosts.at(0).routes.at(0).action).auto_host_rewrite;
}

// The only locality of an EDS resource. Its only endpoint has this hostname.
LocalityPtr locality(const std::string& hostname, const xds::ParseOptions& options) {
  const std::string text = absl::StrCat(
      "cluster_name: \"orders\" endpoints { locality { region: \"r\" } load_balancing_weight { "
      "value: 1 } lb_endpoints { endpoint { hostname: \"",
      hostname,
      "\" address { socket_address { address: \"10.0.0.1\" port_value: 80 } } } } }");
  const auto resource = xds::parse_endpoints(
      xds::serialise<envoy::config::endpoint::v3::ClusterLoadAssignment>(text), options);
  return xds::value_of<Endpoints>(resource).priorities.at(0).localities.at(0);
}

// Makes a call to the only endpoint of a locality, over a route with this action, and returns the
// :authority that the pick chose. A pick must overwrite the value that its caller had before.
struct Call {
  std::string over(const std::string& action, const LocalityPtr& to) {
    const ChosenEndpoint chosen{to, &to->endpoints.front(), nullptr};
    XdsConfig config;
    config.route_config = routes(action, options_of(kTrusted, kOn));
    config.virtual_host = xds::find_virtual_host(*config.route_config, "orders.example");
    world.publish(config, testing::answering([&](const PickArgs&) {
                    Complete complete{world.backend.get()};
                    complete.endpoint = &chosen;
                    return testing::result(complete);
                  }));
    std::string authority = "of another call";
    const lb::Pick pick = world.router.pick({.path = "/s/M", .seed = 7, .authority = &authority});
    CHECK(pick.outcome() == PickOutcome::kComplete);
    return authority;
  }

  testing::RouterFixture world;
};

}  // namespace

SCENARIO("A81: a server may rewrite authorities if the bootstrap trusts it", "[spec][A81]") {
  CHECK(rewrites(kRewrite, kTrusted));
  CHECK(rewrites(kRewrite, "\"xds_v3\", " + kTrusted));
  CHECK_FALSE(rewrites(kRewrite, ""));
  CHECK_FALSE(rewrites(kRewrite, "\"xds_v3\""));
}

SCENARIO("A81: a route says whether it rewrites", "[spec][A81]") {
  CHECK(rewrites(kRewrite));
  CHECK_FALSE(rewrites("auto_host_rewrite { value: false }"));
  CHECK_FALSE(rewrites("auto_host_rewrite {}"));
  CHECK_FALSE(rewrites(""));
}

SCENARIO("A81: endpoints have hostnames", "[spec][A81][A37-20]") {
  GIVEN("an EDS resource") {
    THEN("each has its own, whoever sent it") {
      CHECK(locality("h.example", {})->endpoints.at(0).hostname == "h.example");
      CHECK(locality("", {})->endpoints.at(0).hostname.empty());
    }
  }
  GIVEN("a LOGICAL_DNS cluster") {
    THEN("all have the name that is resolved") {
      const auto found = xds::endpoints_from_dns(
          DnsName("orders.example:443"), {Address("10.0.0.1:443"), Address("10.0.0.2:443")}, {});
      for (const Endpoint& endpoint : found->priorities.at(0).localities.at(0)->endpoints)
        CHECK(endpoint.hostname == "orders.example:443");
    }
  }
}

SCENARIO("A81: the endpoint's hostname is the call's authority, if its route rewrites",
         "[spec][A81][A31-5]") {
  Call call;
  THEN("with both, it is") {
    CHECK(call.over(kRewrite, locality("h.example", {})) == "h.example");
  }
  THEN("without a hostname, the authority is left alone") {
    CHECK(call.over(kRewrite, locality("", {})).empty());
  }
  THEN("without the route's wish, too") {
    CHECK(call.over("", locality("h.example", {})).empty());
  }
}

SCENARIO("A81: the environment variable guards the route's field", "[spec][A81]") {
  CHECK(rewrites(kRewrite, kTrusted, kOn));
  CHECK_FALSE(rewrites(kRewrite, kTrusted, {}));
  CHECK_FALSE(rewrites(kRewrite, kTrusted, {{"GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE", "false"}}));
  CHECK_FALSE(rewrites(kRewrite, kTrusted, {{"GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE", "1"}}));
}

}  // namespace signalbox
