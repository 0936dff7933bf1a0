// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/route_action.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "xds/parse/hash_policy.hpp"
#include "xds/parse/http_filter.hpp"
#include "xds/parse/retry_policy.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using ActionProto = envoy::config::route::v3::RouteAction;
using RouteProto = envoy::config::route::v3::Route;
using WeightedProto = envoy::config::route::v3::WeightedCluster;

// Clusters of weight 0 stay: a session's cookie may name them (A60; messages/named_clusters.hpp).
std::vector<WeightedCluster> parse_weighted(const WeightedProto& proto, const Field& field) {
  std::vector<WeightedCluster> clusters;
  std::uint64_t sum = 0;
  const std::size_t most = field.options().limits.max_clusters;
  if (static_cast<std::size_t>(proto.clusters_size()) > most) {
    field.at("clusters")
        .add_over_limit(
            "max_clusters",
            absl::StrCat("must have at most ", most, " entries, found ", proto.clusters_size()));
    return clusters;
  }
  for (int i = 0; i < proto.clusters_size(); ++i) {
    const auto& entry = proto.clusters(i);
    const Field place = field.at("clusters", static_cast<std::size_t>(i));
    require_name(entry.name(), place.at("name"));
    auto overrides = parse_filter_overrides(entry.typed_per_filter_config(), place);
    const std::uint32_t weight = entry.weight().value();
    sum += weight;
    clusters.push_back({ClusterName{entry.name()}, weight, std::move(overrides)});
  }
  constexpr std::uint64_t kMaxSum = std::numeric_limits<std::uint32_t>::max();
  if (sum == 0 || sum > kMaxSum) {
    field.at("clusters")
        .add(absl::StrCat("the sum of weights must be in [1, ",
                          kMaxSum,
                          "], found ",
                          sum,
                          " in ",
                          proto.clusters_size(),
                          " entries"));
  }
  return clusters;
}

// RouteAction.timeout is not used (A31-23), but it must be valid: a negative duration is a mistake
// of the control plane.
void parse_timeouts(const ActionProto& proto, ForwardAction& action, const Field& route) {
  if (proto.has_timeout()) parse_duration(proto.timeout(), route.at("timeout"));
  const Field field = route.at("max_stream_duration");
  const auto& limits = proto.max_stream_duration();
  if (limits.has_max_stream_duration()) {
    action.max_stream_duration =
        parse_duration(limits.max_stream_duration(), field.at("max_stream_duration"));
  }
  if (limits.has_grpc_timeout_header_max()) {
    action.grpc_timeout_header_max =
        parse_duration(limits.grpc_timeout_header_max(), field.at("grpc_timeout_header_max"));
  }
}

std::optional<ForwardAction> parse_forward(const ActionProto& proto,
                                           const std::optional<RetryPolicy>& host_retry,
                                           const Field& field) {
  ForwardAction action;
  if (proto.has_cluster()) {
    require_name(proto.cluster(), field.at("cluster"));
    action.clusters = {{ClusterName{proto.cluster()}, 1}};
  } else if (proto.has_weighted_clusters()) {
    action.clusters = parse_weighted(proto.weighted_clusters(), field.at("weighted_clusters"));
  } else {
    return std::nullopt;
  }
  parse_timeouts(proto, action, field);
  // A route's retry policy replaces its virtual host's, even if it has no usable condition (A44).
  action.retry = proto.has_retry_policy()
                     ? parse_retry_policy(proto.retry_policy(), field.at("retry_policy"))
                     : host_retry;
  action.hash_policies = parse_hash_policies(proto, field);
  action.auto_host_rewrite = field.options().authority_rewrite && proto.auto_host_rewrite().value();
  return action;
}

const char* name_of(RouteProto::ActionCase action) {
  switch (action) {
    case RouteProto::kRedirect:
      return "redirect";
    case RouteProto::kDirectResponse:
      return "direct_response";
    case RouteProto::kFilterAction:
      return "filter_action";
    case RouteProto::kNonForwardingAction:
      return "non_forwarding_action";
    case RouteProto::kRoute:
    case RouteProto::ACTION_NOT_SET:
      break;
  }
  return "no action";
}

}  // namespace

std::optional<std::variant<ForwardAction, UnsupportedAction>> parse_route_action(
    const RouteProto& proto, const std::optional<RetryPolicy>& host_retry, const Field& field) {
  if (!proto.has_route()) return UnsupportedAction{name_of(proto.action_case())};
  return parse_forward(proto.route(), host_retry, field.at("route"));
}

}  // namespace signalbox::xds
