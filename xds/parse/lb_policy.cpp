// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/lb_policy.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "signalbox/envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb.h"
#include "xds/parse/extension.hpp"
#include "xds/parse/lb_policy_config.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace policies = envoy::extensions::load_balancing_policies;
using ClusterProto = envoy::config::cluster::v3::Cluster;
using envoy::config::cluster::v3::LoadBalancingPolicy;

LbConfigPtr parse_list(const LoadBalancingPolicy& proto, std::size_t depth, const Field& field);

LbConfigPtr parse_wrr_locality(const Extension& extension, std::size_t depth, const Field& field) {
  policies::wrr_locality::v3::WrrLocality proto;
  if (!decode(extension, proto, field)) return nullptr;
  const Field child = field.at("endpoint_picking_policy");
  if (!proto.has_endpoint_picking_policy()) {
    child.add("must be set, found none");
    return nullptr;
  }
  LbConfigPtr policy = parse_list(proto.endpoint_picking_policy(), depth + 1, child);
  WrrLocalityConfig config;
  // wrr_locality chooses the locality, so a choice of the locality below it has nothing to choose
  // from. Only its rule for panic stays.
  const auto* const inner = policy == nullptr ? nullptr : std::get_if<WrrLocalityConfig>(&*policy);
  if (inner != nullptr) {
    config.fail_traffic_on_panic = inner->fail_traffic_on_panic;
    policy = inner->child;
  }
  config.child = std::move(policy);
  return make_lb_config(std::move(config));
}

LbConfigPtr parse_random_subsetting(const Extension& extension,
                                    std::size_t depth,
                                    const Field& field) {
  policies::random_subsetting::v3::RandomSubsetting proto;
  if (!decode(extension, proto, field)) return nullptr;
  RandomSubsettingConfig config;
  config.subset_size = proto.subset_size().value();
  if (config.subset_size == 0) {
    field.at("subset_size")
        .add(absl::StrCat("must be at least 1, found ", proto.has_subset_size() ? "0" : "none"));
  }
  const Field child = field.at("child_policy");
  if (!proto.has_child_policy()) {
    child.add("must be set, found none");
    return nullptr;
  }
  config.child = parse_list(proto.child_policy(), depth + 1, child);
  return make_lb_config(std::move(config));
}

template <LbConfigPtr (*parse)(const Extension& extension, const Field& field)>
LbConfigPtr leaf(const Extension& extension, std::size_t, const Field& field) {
  return parse(extension, field);
}

// The registry (A52): a row for each built-in policy that a cluster may name by an Envoy message.
struct KnownPolicy {
  absl::string_view type;
  absl::string_view name;  ///< The name in ParseOptions::lb_policies.
  LbConfigPtr (*parse)(const Extension& extension, std::size_t depth, const Field& field);
};

constexpr KnownPolicy kKnownPolicies[] = {
    {"client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
     WeightedRoundRobinConfig::kName,
     leaf<parse_weighted_round_robin>},
    {"least_request.v3.LeastRequest", LeastRequestConfig::kName, leaf<parse_least_request>},
    {"maglev.v3.Maglev", MaglevConfig::kName, leaf<parse_maglev>},
    {"pick_first.v3.PickFirst", PickFirstConfig::kName, leaf<parse_pick_first>},
    {"random.v3.Random", RandomConfig::kName, leaf<parse_random>},
    {"random_subsetting.v3.RandomSubsetting",
     RandomSubsettingConfig::kName,
     parse_random_subsetting},
    {"ring_hash.v3.RingHash", RingHashConfig::kName, leaf<parse_ring_hash>},
    {"round_robin.v3.RoundRobin", RoundRobinConfig::kName, leaf<parse_round_robin>},
    {"wrr_locality.v3.WrrLocality", WrrLocalityConfig::kName, parse_wrr_locality},
};

// Policies that can be configured by a JSON structure with gRPC's own name. The structure has
// settings that the policy's message lacks.
constexpr KnownPolicy kStructures[] = {
    {"ring_hash_experimental", RingHashConfig::kName, leaf<parse_ring_hash_structure>},
};

bool runtime_has(absl::string_view policy, const Field& field) {
  return field.options().lb_policies.contains(policy);
}

template <std::size_t size>
const KnownPolicy* find_in(const KnownPolicy (&rows)[size],
                           absl::string_view type,
                           const Field& field) {
  const auto* found = std::find_if(std::begin(rows), std::end(rows), [&](const KnownPolicy& known) {
    return known.type == type;
  });
  return found == std::end(rows) || !runtime_has(found->name, field) ? nullptr : found;
}

const KnownPolicy* find_policy(const Extension& extension, const Field& field) {
  absl::string_view type = extension.type;
  if (absl::ConsumePrefix(&type, "envoy.extensions.load_balancing_policies."))
    return find_in(kKnownPolicies, type, field);
  return extension.structure.has_value() ? find_in(kStructures, type, field) : nullptr;
}

// The parser of a policy that the user registered; null: the extension is no such policy.
const CustomPolicyParser* find_custom(const Extension& extension, const Field& field) {
  const auto& known = field.options().custom_lb_policies;
  if (known == nullptr || !extension.structure.has_value()) return nullptr;
  const auto found = known->find(extension.type);
  return found == known->end() ? nullptr : &found->second;
}

LbConfigPtr parse_custom(const Extension& extension,
                         const CustomPolicyParser& parse,
                         const Field& field) {
  CustomConfig config{extension.type, json_text(*extension.structure)};
  if (parse) {
    auto parsed = parse(config.config);
    if (!parsed.ok()) {
      add_refused(extension, parsed.status(), field);
      return nullptr;
    }
    config.parsed = *std::move(parsed);
  }
  return make_lb_config(std::move(config));
}

// The names of all supported policies, for error texts: the built-in policies, then the user's.
std::string supported_policies(const ParseOptions& options) {
  std::string names = absl::StrJoin(options.lb_policies, ", ");
  if (options.custom_lb_policies == nullptr) return names;
  for (const auto& [name, parse] : *options.custom_lb_policies)
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  return names;
}

// The first supported entry decides: if its configuration is invalid, no later entry is tried
// (A52).
LbConfigPtr parse_list(const LoadBalancingPolicy& proto, std::size_t depth, const Field& field) {
  const std::size_t deepest = field.options().limits.max_lb_policy_nesting;
  if (depth >= deepest) {
    field.add_over_limit("max_lb_policy_nesting",
                         absl::StrCat("must not be nested deeper than ", deepest, " policies"));
    return nullptr;
  }
  std::vector<std::string> unsupported;
  for (int i = 0; i < proto.policies_size(); ++i) {
    const Field entry = field.at("policies", static_cast<std::size_t>(i));
    const Field config = entry.at("typed_extension_config.typed_config");
    const auto& any = proto.policies(i).typed_extension_config();
    if (!any.has_typed_config()) {
      config.add("must be set, found none");
      return nullptr;
    }
    const auto extension = read_extension(any.typed_config(), config);
    if (!extension.has_value()) return nullptr;
    if (const KnownPolicy* known = find_policy(*extension, field))
      return known->parse(*extension, depth, config.at("value"));
    if (const CustomPolicyParser* custom = find_custom(*extension, field)) {
      const Field value = config.at("value");
      return parse_custom(*extension, *custom, value);
    }
    unsupported.push_back(in_quotes(extension->type));
  }
  field.add(absl::StrCat("must name a policy that is supported (",
                         supported_policies(field.options()),
                         "), found ",
                         unsupported.empty() ? "none" : absl::StrJoin(unsupported, ", ")));
  return nullptr;
}

LbConfigPtr under_localities(WrrLocalityConfig localities, LbConfigPtr policy) {
  localities.child = std::move(policy);
  return make_lb_config(std::move(localities));
}

// The older field lb_policy has one value and no fallback, so an unsupported value is an error
// (A27).
LbConfigPtr parse_enum(const ClusterProto& proto, const Field& top) {
  std::vector<absl::string_view> supported = {"ROUND_ROBIN"};
  const WrrLocalityConfig localities =
      parse_localities(proto.common_lb_config(), top.at("common_lb_config"));
  if (proto.lb_policy() == ClusterProto::ROUND_ROBIN) {
    return under_localities(
        localities,
        parse_round_robin(proto.round_robin_lb_config(), top.at("round_robin_lb_config")));
  }
  if (runtime_has(RingHashConfig::kName, top)) {
    supported.emplace_back("RING_HASH");
    if (proto.lb_policy() == ClusterProto::RING_HASH)
      return parse_ring_hash(proto.ring_hash_lb_config(), top.at("ring_hash_lb_config"));
  }
  if (runtime_has(LeastRequestConfig::kName, top)) {
    supported.emplace_back("LEAST_REQUEST");
    if (proto.lb_policy() == ClusterProto::LEAST_REQUEST) {
      return under_localities(
          localities,
          parse_least_request(proto.least_request_lb_config(), top.at("least_request_lb_config")));
    }
  }
  if (runtime_has(RandomConfig::kName, top)) {
    supported.emplace_back("RANDOM");
    if (proto.lb_policy() == ClusterProto::RANDOM)
      return under_localities(localities, make_lb_config(RandomConfig{}));
  }
  if (runtime_has(MaglevConfig::kName, top)) {
    supported.emplace_back("MAGLEV");
    if (proto.lb_policy() == ClusterProto::MAGLEV)
      return parse_maglev(proto.maglev_lb_config(), top.at("maglev_lb_config"));
  }
  top.at("lb_policy")
      .add(absl::StrCat(
          "must be ",
          absl::StrJoin(supported, " or "),
          " where load_balancing_policy is not set, found ",
          enum_text(proto.lb_policy(), ClusterProto::LbPolicy_Name(proto.lb_policy()))));
  return nullptr;
}

}  // namespace

NameSet lb_policy_names() {
  NameSet names;
  for (const KnownPolicy& known : kKnownPolicies)
    names.emplace(known.name);
  return names;
}

LbConfigPtr parse_lb_policy(const ClusterProto& proto, const Field& top) {
  if (proto.has_load_balancing_policy())
    return parse_list(proto.load_balancing_policy(), 0, top.at("load_balancing_policy"));
  return parse_enum(proto, top);
}

}  // namespace signalbox::xds
