// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/lb_policy.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "signalbox/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb.h"
#include "xds/limits.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

namespace policies = envoy::extensions::load_balancing_policies;
using envoy::config::cluster::v3::Cluster;
using envoy::config::cluster::v3::LoadBalancingPolicy;

LbConfigPtr parse_list(const LoadBalancingPolicy& proto, std::size_t depth, const Field& field);

LbConfigPtr parse_round_robin(absl::string_view bytes, std::size_t, const Field& field) {
  policies::round_robin::v3::RoundRobin proto;
  if (!decode(bytes, proto, field)) return nullptr;
  return make_lb_config(RoundRobinConfig{});
}

LbConfigPtr parse_pick_first(absl::string_view bytes, std::size_t, const Field& field) {
  policies::pick_first::v3::PickFirst proto;
  if (!decode(bytes, proto, field)) return nullptr;
  return make_lb_config(PickFirstConfig{proto.shuffle_address_list()});
}

LbConfigPtr parse_wrr_locality(absl::string_view bytes, std::size_t depth, const Field& field) {
  policies::wrr_locality::v3::WrrLocality proto;
  if (!decode(bytes, proto, field)) return nullptr;
  const Field child = field.at("endpoint_picking_policy");
  if (!proto.has_endpoint_picking_policy()) {
    child.add("must be set, found none");
    return nullptr;
  }
  return make_lb_config(
      WrrLocalityConfig{parse_list(proto.endpoint_picking_policy(), depth + 1, child)});
}

// The registry (A52): a row for each policy that a cluster may name.
struct KnownPolicy {
  absl::string_view type;
  LbConfigPtr (*parse)(absl::string_view bytes, std::size_t depth, const Field& field);
};

constexpr KnownPolicy kKnownPolicies[] = {
    {"envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst", parse_pick_first},
    {"envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin", parse_round_robin},
    {"envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality", parse_wrr_locality},
};

const KnownPolicy* find_policy(absl::string_view type) {
  const auto* found = std::find_if(std::begin(kKnownPolicies),
                                   std::end(kKnownPolicies),
                                   [&](const KnownPolicy& known) { return known.type == type; });
  return found == std::end(kKnownPolicies) ? nullptr : found;
}

// The first supported entry decides: if its configuration is wrong, no later one is tried (A52).
LbConfigPtr parse_list(const LoadBalancingPolicy& proto, std::size_t depth, const Field& field) {
  if (depth >= kMaxLbPolicyNesting) {
    field.add(absl::StrCat("must not be nested deeper than ", kMaxLbPolicyNesting, " policies"));
    return nullptr;
  }
  std::vector<std::string> unsupported;
  for (int i = 0; i < proto.policies_size(); ++i) {
    const Field entry = field.at("policies", static_cast<std::size_t>(i));
    const Field config = entry.at("typed_extension_config.typed_config");
    const auto& extension = proto.policies(i).typed_extension_config();
    if (!extension.has_typed_config()) {
      config.add("must be set, found none");
      return nullptr;
    }
    const auto type = config_type(extension.typed_config(), config);
    if (!type.has_value()) return nullptr;
    if (const KnownPolicy* known = find_policy(*type)) {
      return known->parse(extension.typed_config().value(), depth, config.at("value"));
    }
    unsupported.push_back(quoted(*type));
  }
  field.add(absl::StrCat("must name a policy that is supported, found ",
                         unsupported.empty() ? "none" : absl::StrJoin(unsupported, ", ")));
  return nullptr;
}

}  // namespace

LbConfigPtr parse_lb_policy(const Cluster& proto, const Field& top) {
  if (proto.has_load_balancing_policy()) {
    return parse_list(proto.load_balancing_policy(), 0, top.at("load_balancing_policy"));
  }
  if (proto.lb_policy() == Cluster::ROUND_ROBIN) {
    return make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})});
  }
  top.at("lb_policy")
      .add(absl::StrCat("must be ROUND_ROBIN where load_balancing_policy is not set, found ",
                        enum_text(proto.lb_policy(), Cluster::LbPolicy_Name(proto.lb_policy()))));
  return nullptr;
}

}  // namespace signalbox::xds
