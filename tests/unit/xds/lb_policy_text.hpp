// SPDX-License-Identifier: Apache-2.0
//
// The load_balancing_policy of a cluster as text: a list, its entries, and TypedStructs as entries.
//
//   list(entry("ring_hash.v3.RingHash", "…") + kRoundRobin) ─▶ parse ─▶ [config_of | error_in]

#pragma once

#include <memory>
#include <string>
#include <variant>

#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/support/parse_options.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds {

inline const std::string kPolicies =
    "type.googleapis.com/envoy.extensions.load_balancing_policies.";
inline const std::string kValue =
    "load_balancing_policy.policies[0].typed_extension_config.typed_config.value";

inline ReceivedResource parse(const std::string& fields,
                              const ParseOptions& options = all_parse_options()) {
  return parse_cluster(
      serialise<envoy::config::cluster::v3::Cluster>(
          R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + fields),
      options);
}

inline std::string error_in(const std::string& fields,
                            const ParseOptions& options = all_parse_options()) {
  const std::string error = error_of(parse(fields, options));
  const std::string prefix = R"(CDS resource "orders": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

inline std::string any(const std::string& typed_config) {
  return "policies { typed_extension_config { typed_config { " + typed_config + " } } } ";
}

inline std::string entry(const std::string& type, const std::string& config = "") {
  return any("[" + kPolicies + type + "] { " + config + " }");
}

inline std::string list(const std::string& entries) {
  return "load_balancing_policy { " + entries + " }";
}

inline std::string typed_struct(const std::string& type, const std::string& fields) {
  return any("[type.googleapis.com/xds.type.v3.TypedStruct] { type_url: \"type.googleapis.com/" +
             type + "\" value { " + fields + " } }");
}

inline const std::string kRoundRobin = entry("round_robin.v3.RoundRobin");

/// The options of a runtime that has only the mandatory policies.
inline ParseOptions without_policies() {
  ParseOptions options;
  options.lb_policies = {"pick_first", "round_robin", "wrr_locality"};
  return options;
}

template <typename Config>
Config config_of(const std::string& fields) {
  const LbConfigPtr policy = value_of<Cluster>(parse(fields)).lb_policy;
  REQUIRE(policy != nullptr);
  REQUIRE(std::holds_alternative<Config>(*policy));
  return std::get<Config>(*policy);
}

}  // namespace signalbox::xds
