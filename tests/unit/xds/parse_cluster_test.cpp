// SPDX-License-Identifier: Apache-2.0
//
// The name, the LB policy and the connect timeout of a cluster, and the mode and the panic
// threshold of an aggregate. tests/spec/a37_validation_test has the cluster's discovery.
#include <chrono>

#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds::parse_cluster_test {
namespace {

using namespace std::chrono_literals;
using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kPolicies = "type.googleapis.com/envoy.extensions.load_balancing_policies.";

std::string with(const std::string& fields) {
  return R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + fields;
}

ReceivedResource parse(const std::string& fields) {
  return parse_cluster(serialise<ClusterProto>(with(fields)));
}

std::string error_in(const std::string& fields) {
  return error_of(parse(fields));
}

std::string error_text(const std::string& what) {
  return R"(CDS resource "orders": )" + what;
}

// One entry of a policy list.
std::string entry(const std::string& type, const std::string& config = "") {
  return "policies { typed_extension_config { typed_config { [" + kPolicies + type + "] { " +
         config + " } } } } ";
}

const std::string kRoundRobin = entry("round_robin.v3.RoundRobin");
const std::string kUnknown =
    R"(policies { typed_extension_config { typed_config {
         type_url: "type.googleapis.com/envoy.extensions.load_balancing_policies.subset.v3.Subset"
       } } } )";

std::string wrr_locality(const std::string& list) {
  return entry("wrr_locality.v3.WrrLocality", "endpoint_picking_policy { " + list + " }");
}

std::string list(const std::string& entries) {
  return "load_balancing_policy { " + entries + " }";
}

const std::string kWrr = kPolicies + "wrr_locality.v3.WrrLocality";

}  // namespace

TEST_CASE("parse_cluster: an LB policy that cannot be had is an error", "[xds][parse][A52]") {
  const std::string top = "load_balancing_policy";
  const std::string config = ".policies[0].typed_extension_config.typed_config";

  struct Row {
    const char* when;
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"the list is empty",
       list(""),
       top + ": must name a policy that is supported (least_request, maglev, pick_first, random, "
             "random_subsetting, "
             "ring_hash, "
             "round_robin, weighted_round_robin, wrr_locality), "
             "found none"},
      {"all are unknown",
       list(kUnknown),
       top + ": must name a policy that is supported (least_request, maglev, pick_first, random, "
             "random_subsetting, "
             "ring_hash, "
             "round_robin, weighted_round_robin, wrr_locality), found "
             "\"envoy.extensions.load_balancing_policies.subset.v3.Subset\""},
      {"an entry says nothing", list("policies {}"), top + config + ": must be set, found none"},
      {"wrr_locality has no child",
       list(entry("wrr_locality.v3.WrrLocality")),
       top + config + ".value.endpoint_picking_policy: must be set, found none"},
      {"wrr_locality's child is unknown",
       list(wrr_locality(kUnknown)),
       top + config +
           ".value.endpoint_picking_policy: must name a policy that is supported (least_request, "
           "maglev, "
           "pick_first, random, random_subsetting, ring_hash, round_robin, weighted_round_robin, "
           "wrr_locality), found "
           "\"envoy.extensions.load_balancing_policies.subset.v3.Subset\""},
      {"its configuration is not decodable",
       list("policies { typed_extension_config { typed_config { type_url: \"" + kWrr +
            "\" value: \"\\377\" } } } " + kRoundRobin),
       top + config + ".value: must be of type WrrLocality, found 1 bytes that are not"},
      {"the old field names another",
       "lb_policy: CLUSTER_PROVIDED",
       "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST or RANDOM or MAGLEV where "
       "load_balancing_policy is not set, found CLUSTER_PROVIDED"},
      {"the old field has a number that nobody knows",
       "lb_policy: 99",
       "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST or RANDOM or MAGLEV where "
       "load_balancing_policy is not set, found 99"},
      {"the old field points to a list that is not there",
       "lb_policy: LOAD_BALANCING_POLICY_CONFIG",
       "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST or RANDOM or MAGLEV where "
       "load_balancing_policy is not set, found LOAD_BALANCING_POLICY_CONFIG"},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(error_in(row.fields) == error_text(row.error));
  }
}

TEST_CASE("parse_cluster: an aggregate's LB policy is read only where it is to be kept",
          "[xds][parse][A75-7][A75-8]") {
  const auto bytes = [](const std::string& lb_policy) {
    return serialise<ClusterProto>(R"(name: "orders" cluster_type { typed_config {
        [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
          clusters: "primary" } } } )" +
                                   lb_policy);
  };
  ParseOptions keep;
  keep.keep_aggregate_lb_policy = true;

  CHECK(value_of<Cluster>(parse_cluster(bytes("lb_policy: CLUSTER_PROVIDED"))).lb_policy ==
        nullptr);
  CHECK(value_of<Cluster>(parse_cluster(bytes("lb_policy: RING_HASH"))).lb_policy == nullptr);
  CHECK(same_config(value_of<Cluster>(parse_cluster(bytes(list(kRoundRobin)), keep)).lb_policy,
                    make_lb_config(RoundRobinConfig{})));
  CHECK(error_of(parse_cluster(bytes("lb_policy: CLUSTER_PROVIDED"), keep))
            .find("found CLUSTER_PROVIDED") != std::string::npos);
}

TEST_CASE("parse_cluster: an aggregate says how its calls are spread", "[xds][parse][D1]") {
  const std::string aggregate = R"(name: "orders" cluster_type { typed_config {
      [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
        clusters: "primary" } } } )";
  const auto with = [&](const std::string& value) {
    return aggregate + R"(metadata { filter_metadata { key: "signalbox" value {
        fields { key: "aggregate_mode" value { )" +
           value + " } } } } }";
  };
  const auto mode = [](const std::string& text) {
    return value_of<Cluster>(parse_cluster(serialise<ClusterProto>(text))).aggregate_mode;
  };
  const auto error = [](const std::string& text) {
    return error_of(parse_cluster(serialise<ClusterProto>(text)));
  };
  CHECK(mode(with(R"(string_value: "priority")")) == AggregateMode::kPriority);
  CHECK(mode(with(R"(string_value: "tiered")")) == AggregateMode::kTiered);
  CHECK(mode(aggregate) == std::nullopt);
  CHECK(mode(aggregate + R"(metadata { filter_metadata { key: "signalbox" value {} } })") ==
        std::nullopt);
  CHECK(mode(aggregate + R"(metadata { filter_metadata { key: "other" value { fields {
                key: "aggregate_mode" value { string_value: "tiered" } } } } })") == std::nullopt);
  const std::string place =
      R"(CDS resource "orders": metadata.filter_metadata["signalbox"].aggregate_mode: )"
      R"(must be "priority" or "tiered", found )";
  CHECK(error(with(R"(string_value: "Tiered")")) == place + "\"Tiered\"");
  CHECK(error(with("number_value: 1")) == place + "no string");
  // aggregate_mode has no meaning in a leaf cluster, and is not validated there.
  const std::string leaf = R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } }
      metadata { filter_metadata { key: "signalbox" value {
        fields { key: "aggregate_mode" value { string_value: "?" } } } } })";
  CHECK(mode(leaf) == std::nullopt);
}

TEST_CASE("parse_cluster: healthy_panic_threshold is a percentage, of which fractions are cut off",
          "[xds][parse][ENV-31]") {
  const std::string aggregate =
      R"(name: "orders" cluster_type { typed_config {
        [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
        clusters: "primary" } } } )";
  const auto with = [&](const std::string& value) {
    return parse_cluster(serialise<ClusterProto>(
        aggregate + "common_lb_config { healthy_panic_threshold { " + value + " } }"));
  };
  const auto threshold = [&](const std::string& value) {
    return value_of<Cluster>(with(value)).panic_threshold;
  };
  CHECK(value_of<Cluster>(parse_cluster(serialise<ClusterProto>(aggregate))).panic_threshold ==
        std::nullopt);
  CHECK(threshold("") == 0U);
  CHECK(threshold("value: 50") == 50U);
  CHECK(threshold("value: 33.9") == 33U);
  CHECK(threshold("value: 100") == 100U);
  const std::string place =
      "CDS resource \"orders\": common_lb_config.healthy_panic_threshold.value: must be 0 to 100 "
      "(percent), found ";
  CHECK(error_of(with("value: 100.5")) == place + "100.5");
  CHECK(error_of(with("value: 1e300")) == place + "1e+300");
  CHECK(error_of(with("value: -1")) == place + "-1");
  CHECK(error_of(with("value: nan")) == place + "nan");
  // The threshold has no meaning in a leaf cluster, but is validated there, too.
  CHECK(error_of(parse("common_lb_config { healthy_panic_threshold { value: 101 } }")) ==
        place + "101");
}

TEST_CASE("parse_cluster: connect_timeout is gRPC's 20 s where it is not set",
          "[xds][parse][D19]") {
  CHECK(value_of<Cluster>(parse("")).connect_timeout == 20s);
  CHECK(
      value_of<Cluster>(parse("connect_timeout { seconds: 1 nanos: 500000000 }")).connect_timeout ==
      1500ms);
  // More than 292 years do not fit into nanoseconds, so the timeout is cut to 100 years.
  const auto longest = parse("connect_timeout { seconds: 315576000000 nanos: 999999999 }");
  CHECK(value_of<Cluster>(longest).connect_timeout == std::chrono::hours(24 * 36'525));
  const auto just_longer = parse("connect_timeout { seconds: 3155760000 nanos: 5 }");
  CHECK(value_of<Cluster>(just_longer).connect_timeout ==
        value_of<Cluster>(longest).connect_timeout);
}

TEST_CASE("parse_cluster: a connect_timeout out of range is an error",
          "[xds][parse][A75-19][A75-20][A75-23]") {
  struct Row {
    const char* duration;
    const char* error;
  };

  const auto row = GENERATE(
      Row{"seconds: -1", "connect_timeout.seconds: must be in [0, 315576000000], found -1"},
      Row{"seconds: 315576000001",
          "connect_timeout.seconds: must be in [0, 315576000000], found 315576000001"},
      Row{"nanos: -1", "connect_timeout.nanos: must be in [0, 999999999], found -1"},
      Row{"seconds: 1 nanos: 1000000000",
          "connect_timeout.nanos: must be in [0, 999999999], found 1000000000"},
      Row{"seconds: -1 nanos: -1",
          "connect_timeout.seconds: must be in [0, 315576000000], found -1; "
          "connect_timeout.nanos: must be in [0, 999999999], found -1"},
      Row{"", "connect_timeout: must be longer than 0, found 0"});
  CHECK(error_in(std::string("connect_timeout { ") + row.duration + " }") == error_text(row.error));
}

TEST_CASE("parse_cluster: a name is neither empty nor endless", "[xds][parse][limits]") {
  CHECK(error_of(parse_cluster("")).find("name: must not be empty, found \"\"") !=
        std::string::npos);
  const std::string longest(kMaxNameLength, 'n');
  const std::string rest = R"(" type: EDS eds_cluster_config { eds_config { ads {} } })";
  CHECK(error_of(parse_cluster(serialise<ClusterProto>("name: \"" + longest + rest))).empty());
  const auto received = parse_cluster(serialise<ClusterProto>("name: \"x" + longest + rest));
  CHECK(error_of(received).find("name: must not be longer than 1024 bytes, found 1025 bytes") !=
        std::string::npos);
}

TEST_CASE("parse_cluster: bytes that are no Cluster have no name", "[xds][parse]") {
  const ReceivedResource received = parse_cluster("\xff\xff");
  CHECK(received.name.empty());
  CHECK(error_of(received) == "CDS resource must be a Cluster, found 2 bytes that are not");
}

}  // namespace signalbox::xds::parse_cluster_test
