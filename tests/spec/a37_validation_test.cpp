// SPDX-License-Identifier: Apache-2.0
//
// gRFC A37, "Changes to XdsClient": the parsing of a Cluster resource, and the rules that make it
// invalid. A75 decides which cluster's LB policy counts.
#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kEds =
    R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } service_name: "svc" })";
const std::string kDns =
    R"(name: "orders" type: LOGICAL_DNS load_assignment { endpoints { lb_endpoints { endpoint {
         address { socket_address { address: "orders.example" port_value: 443 } } } } } })";
const std::string kAggregate =
    R"(name: "orders" cluster_type { name: "envoy.clusters.aggregate" typed_config {
         [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
           clusters: "b" clusters: "a" clusters: "c" } } })";

ReceivedResource parse(const std::string& text) {
  return parse_cluster(serialise<ClusterProto>(text));
}

std::string error_in(const std::string& text) {
  const std::string error = error_of(parse(text));
  const std::string prefix = R"(CDS resource "orders": )";
  INFO(error);
  CHECK((error.empty() || error.rfind(prefix, 0) == 0));
  return error.empty() ? error : error.substr(prefix.size());
}

// A LOGICAL_DNS cluster. The text goes into its only endpoint entry.
std::string dns_with(const std::string& lb_endpoint) {
  return R"(name: "orders" type: LOGICAL_DNS load_assignment { endpoints { lb_endpoints { )" +
         lb_endpoint + " } } }";
}

}  // namespace

// --- what is reported ---------------------------------------------------------

TEST_CASE("A37: a cluster is EDS, LOGICAL_DNS or aggregate", "[spec][A37-1]") {
  CHECK(std::holds_alternative<EdsDiscovery>(value_of<Cluster>(parse(kEds)).discovery));
  CHECK(std::holds_alternative<DnsDiscovery>(value_of<Cluster>(parse(kDns)).discovery));
  CHECK(std::holds_alternative<AggregateDiscovery>(value_of<Cluster>(parse(kAggregate)).discovery));
}

TEST_CASE("A37: LOGICAL_DNS carries host and port of its one endpoint", "[spec][A37-2]") {
  struct Row {
    const char* address;
    const char* name;
  };

  const auto row = GENERATE(Row{"orders.example", "orders.example:443"},
                            Row{"10.0.0.1", "10.0.0.1:443"},
                            Row{"::1", "[::1]:443"});
  const auto received = parse(dns_with(std::string(R"(endpoint { address { socket_address {
      address: ")") + row.address + R"(" port_value: 443 } } })"));
  CHECK(value_of<Cluster>(received).discovery ==
        decltype(Cluster::discovery){DnsDiscovery{DnsName{row.name}}});
}

TEST_CASE("A37: an aggregate carries its clusters in their order", "[spec][A37-3][A37-16]") {
  CHECK(value_of<Cluster>(parse(kAggregate)).discovery ==
        decltype(Cluster::discovery){
            AggregateDiscovery{{ClusterName{"b"}, ClusterName{"a"}, ClusterName{"c"}}}});
}

TEST_CASE("A37: the EDS service name counts for EDS clusters only", "[spec][A37-4]") {
  CHECK(value_of<Cluster>(parse(kEds)).discovery ==
        decltype(Cluster::discovery){EdsDiscovery{"svc"}});
  const std::string eds_config = R"( eds_cluster_config { service_name: "svc" })";
  CHECK(
      std::holds_alternative<DnsDiscovery>(value_of<Cluster>(parse(kDns + eds_config)).discovery));
  CHECK(std::holds_alternative<AggregateDiscovery>(
      value_of<Cluster>(parse(kAggregate + eds_config)).discovery));
}

TEST_CASE("A27: without a service name the cluster's own name is asked for", "[spec][A27]") {
  const auto received = parse(R"(name: "orders" type: EDS eds_cluster_config { eds_config {
      self {} } })");
  CHECK(value_of<Cluster>(received).discovery ==
        decltype(Cluster::discovery){EdsDiscovery{"orders"}});
}

TEST_CASE("A37: an LRS server is the leaf's own affair, and must be self", "[spec][A37-5]") {
  for (const std::string& text : {kEds, kDns, kAggregate}) {
    CHECK(error_in(text + " lrs_server { self {} }").empty());
    CHECK(value_of<Cluster>(parse(text + " lrs_server { self {} }")).discovery ==
          value_of<Cluster>(parse(text)).discovery);
    CHECK(error_in(text + " lrs_server { ads {} }") ==
          "lrs_server: must be self, found another server");
  }
}

// --- what is invalid: type ------------------------------------------------------

TEST_CASE("A37: any other discovery type is invalid, by name", "[spec][A37-35]") {
  struct Row {
    const char* type;
    const char* found;
  };

  const auto row = GENERATE(Row{"type: STATIC", "STATIC"},
                            Row{"type: STRICT_DNS", "STRICT_DNS"},
                            Row{"type: ORIGINAL_DST", "ORIGINAL_DST"},
                            Row{"type: 77", "77"},
                            Row{"", "none"});
  CHECK(error_in(std::string(R"(name: "orders" )") + row.type) ==
        std::string("type: must be EDS or LOGICAL_DNS, or cluster_type be set; found ") +
            row.found);
}

TEST_CASE("A37: type comes before cluster_type, the later one of a message counts",
          "[spec][A37-48]") {
  // type and cluster_type are in one oneof: the field that a server sends last replaces the other.
  const std::string aggregate = serialise<ClusterProto>(kAggregate);
  const std::string eds = serialise<ClusterProto>(kEds);
  CHECK(std::holds_alternative<EdsDiscovery>(
      value_of<Cluster>(parse_cluster(aggregate + eds)).discovery));
  CHECK(std::holds_alternative<AggregateDiscovery>(
      value_of<Cluster>(parse_cluster(eds + aggregate)).discovery));
}

// --- what is invalid: EDS -------------------------------------------------------

TEST_CASE("A37: an EDS cluster is validated as A27 says", "[spec][A37-36][A27]") {
  struct Row {
    const char* text;
    const char* error;
  };

  const auto row = GENERATE(
      Row{R"(name: "orders" type: EDS)", "eds_cluster_config.eds_config: must be set, found none"},
      Row{R"(name: "orders" type: EDS eds_cluster_config { service_name: "s" })",
          "eds_cluster_config.eds_config: must be set, found none"},
      Row{R"(name: "orders" type: EDS eds_cluster_config { eds_config {} })",
          "eds_cluster_config.eds_config: must be ads or self, found none"},
      Row{R"(name: "orders" type: EDS eds_cluster_config { eds_config { path: "/etc" } })",
          "eds_cluster_config.eds_config: must be ads or self, found path"},
      Row{R"(name: "orders" type: EDS eds_cluster_config { eds_config { api_config_source {} } })",
          "eds_cluster_config.eds_config: must be ads or self, found api_config_source"});
  CHECK(error_in(row.text) == row.error);
}

TEST_CASE("A37: an EDS cluster with an xdstp name needs a service name", "[spec][A37-36][A47]") {
  const std::string name = "xdstp://authority/envoy.config.cluster.v3.Cluster/orders";
  const std::string text = R"(name: ")" + name + R"(" type: EDS eds_cluster_config { eds_config {
      ads {} } )";
  CHECK(error_of(parse(text + "}")) ==
        R"(CDS resource ")" + name +
            R"(": eds_cluster_config.service_name: must be set where the cluster has an xdstp )"
            "name, found none");
  CHECK(error_of(parse(text + R"(service_name: "s" })")).empty());
}

// --- what is invalid: LOGICAL_DNS -----------------------------------------------

TEST_CASE("A37: LOGICAL_DNS needs load_assignment", "[spec][A37-37]") {
  CHECK(error_in(R"(name: "orders" type: LOGICAL_DNS)") ==
        "load_assignment: must be set for LOGICAL_DNS, found none");
}

TEST_CASE("A37: LOGICAL_DNS has exactly one locality", "[spec][A37-38]") {
  CHECK(error_in(R"(name: "orders" type: LOGICAL_DNS load_assignment {})") ==
        "load_assignment.endpoints: must have exactly one entry, found 0");
  CHECK(error_in(
            R"(name: "orders" type: LOGICAL_DNS load_assignment { endpoints {} endpoints {} })") ==
        "load_assignment.endpoints: must have exactly one entry, found 2");
}

TEST_CASE("A37: LOGICAL_DNS has exactly one endpoint", "[spec][A37-39]") {
  CHECK(error_in(R"(name: "orders" type: LOGICAL_DNS load_assignment { endpoints {} })") ==
        "load_assignment.endpoints[0].lb_endpoints: must have exactly one entry, found 0");
  CHECK(error_in(R"(name: "orders" type: LOGICAL_DNS load_assignment { endpoints {
                     lb_endpoints {} lb_endpoints {} lb_endpoints {} } })") ==
        "load_assignment.endpoints[0].lb_endpoints: must have exactly one entry, found 3");
}

TEST_CASE("A37: LOGICAL_DNS needs the endpoint", "[spec][A37-40]") {
  const std::string error =
      "load_assignment.endpoints[0].lb_endpoints[0].endpoint: must be set, found none";
  CHECK(error_in(dns_with("")) == error);
  CHECK(error_in(dns_with(R"(endpoint_name: "elsewhere")")) == error);
}

TEST_CASE("A37: LOGICAL_DNS needs the address", "[spec][A37-41]") {
  CHECK(error_in(dns_with("endpoint {}")) ==
        "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address: must be set, found none");
}

TEST_CASE("A37: LOGICAL_DNS needs a socket address", "[spec][A37-42]") {
  const std::string place =
      "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address: ";
  CHECK(error_in(dns_with("endpoint { address {} }")) == place + "must be set, found none");
  CHECK(error_in(dns_with(R"(endpoint { address { pipe { path: "/p" } } })")) ==
        place + "must be set, found pipe");
}

TEST_CASE("A37: LOGICAL_DNS needs a host", "[spec][A37-43]") {
  CHECK(error_in(dns_with("endpoint { address { socket_address { port_value: 1 } } }")) ==
        "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: "
        R"(must not be empty, found "")");
}

TEST_CASE("A37: LOGICAL_DNS needs a port, and takes no resolver", "[spec][A37-44]") {
  const std::string place =
      "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.";

  struct Row {
    const char* port;
    const char* error;
  };

  const auto row = GENERATE(
      Row{"", "port_value: must be set, found none"},
      Row{R"(named_port: "http")", R"(port_value: must be set, found named_port "http")"},
      Row{"port_value: 65536", "port_value: must be in [0, 65535], found 65536"},
      Row{R"(port_value: 1 resolver_name: "r")", R"(resolver_name: must not be set, found "r")"});
  CHECK(error_in(dns_with(std::string(R"(endpoint { address { socket_address { address: "h" )") +
                          row.port + " } } }")) == place + row.error);
}

TEST_CASE("A37: LOGICAL_DNS takes any port that is set", "[spec][A37-44]") {
  CHECK(error_in(
            dns_with(R"(endpoint { address { socket_address { address: "h" port_value: 0 } } })"))
            .empty());
}

// --- what is invalid: aggregate ---------------------------------------------------

TEST_CASE("A37: an aggregate needs typed_config", "[spec][A37-45]") {
  CHECK(error_in(R"(name: "orders" cluster_type { name: "envoy.clusters.aggregate" })") ==
        "cluster_type.typed_config: must be set, found none");
}

TEST_CASE("A37: an aggregate's typed_config is a ClusterConfig", "[spec][A37-46]") {
  const std::string expected =
      "cluster_type.typed_config.type_url: must be "
      "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, found ";
  const auto url = GENERATE(
      as<std::string>{},
      "",
      "type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisConfig",
      "envoy.extensions.clusters.aggregate.v3.ClusterConfig",
      "other.host/envoy.extensions.clusters.aggregate.v3.ClusterConfig",
      "type.googleapis.com/signalbox.envoy.extensions.clusters.aggregate.v3.ClusterConfig");
  CHECK(error_in(R"(name: "orders" cluster_type { typed_config { type_url: ")" + url +
                 R"(" value: "\n\001a" } })") == expected + "\"" + url + "\"");
}

TEST_CASE("A37: an aggregate has clusters", "[spec][A37-16][A37-47]") {
  CHECK(error_in(R"(name: "orders" cluster_type { typed_config {
      [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {} } })") ==
        "cluster_type.typed_config.value.clusters: must have at least one entry, found 0");
}

TEST_CASE("A37: the names of an aggregate's clusters are not empty", "[spec][A37-47]") {
  CHECK(error_in(R"(name: "orders" cluster_type { typed_config {
      [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
        clusters: "a" clusters: "" } } })") ==
        R"(cluster_type.typed_config.value.clusters[1]: must not be empty, found "")");
}

TEST_CASE("A37: an aggregate's value must be decodable", "[spec][A37-50]") {
  CHECK(
      error_in(R"(name: "orders" cluster_type { typed_config {
      type_url: "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig"
      value: "\377\377\377" } })") ==
      "cluster_type.typed_config.value: must be of type ClusterConfig, found 3 bytes that are not");
}

// --- the LB policy of leaf or aggregate ---------------------------------------------

TEST_CASE("A75: the LB policy is each leaf's own, never the aggregate's", "[spec][A75-6][A37-26]") {
  const auto wrr_round_robin =
      make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})});
  CHECK(same_config(value_of<Cluster>(parse(kEds)).lb_policy, wrr_round_robin));
  CHECK(same_config(value_of<Cluster>(parse(kDns)).lb_policy, wrr_round_robin));
  CHECK(value_of<Cluster>(parse(kAggregate)).lb_policy == nullptr);
}

TEST_CASE("A75: an aggregate's lb_policy is ignored, whatever it is", "[spec][A75-7][ENV-1]") {
  const auto policy = GENERATE(as<std::string>{},
                               "",
                               "lb_policy: CLUSTER_PROVIDED",
                               "lb_policy: ROUND_ROBIN",
                               "lb_policy: CLUSTER_PROVIDED",
                               "lb_policy: 99",
                               "load_balancing_policy {}",
                               "load_balancing_policy { policies {} }");
  CHECK(error_in(kAggregate + policy).empty());
  CHECK(value_of<Cluster>(parse(kAggregate + policy)).lb_policy == nullptr);
}

// --- all at once --------------------------------------------------------------------

TEST_CASE("A37: every error of a cluster is told at once", "[spec][A37][A40]") {
  CHECK(error_in(R"(name: "orders" type: LOGICAL_DNS lb_policy: CLUSTER_PROVIDED
                    connect_timeout { seconds: -1 } load_assignment { endpoints {} endpoints {} }
                    lrs_server { ads {} })") ==
        "load_assignment.endpoints: must have exactly one entry, found 2; "
        "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST or RANDOM or MAGLEV where "
        "load_balancing_policy is "
        "not set, found CLUSTER_PROVIDED; "
        "connect_timeout.seconds: must be in [0, 315576000000], found -1; "
        "lrs_server: must be self, found another server");
}

}  // namespace signalbox::xds
