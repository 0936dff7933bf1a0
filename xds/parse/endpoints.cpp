// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/endpoints.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <google/protobuf/arena.h>

#include "messages/endpoints.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "xds/limits.hpp"
#include "xds/parse/endpoint_metadata.hpp"
#include "xds/parse/lb_endpoint.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using AssignmentProto = envoy::config::endpoint::v3::ClusterLoadAssignment;
using EndpointProto = envoy::config::endpoint::v3::LbEndpoint;
using LocalityEndpointsProto = envoy::config::endpoint::v3::LocalityLbEndpoints;
using PriorityMap = std::map<std::uint32_t, Priority>;

constexpr std::uint64_t kMaxWeightSum = std::numeric_limits<std::uint32_t>::max();

// The health of an endpoint of Priority::localities; nullopt: the endpoint does not belong there.
std::optional<HealthStatus> usable_health(const EndpointProto& proto, const ParseOptions& options) {
  switch (proto.health_status()) {
    case envoy::config::core::v3::UNKNOWN:
      return HealthStatus::kUnknown;
    case envoy::config::core::v3::HEALTHY:
      return HealthStatus::kHealthy;
    case envoy::config::core::v3::DRAINING:
      // A55-40: only sessions use draining endpoints.
      if (!options.session_affinity) return std::nullopt;
      return HealthStatus::kDraining;
    default:
      return std::nullopt;
  }
}

void check_weights(const Locality& locality, const Field& field) {
  std::uint64_t sum = 0;
  for (const Endpoint& endpoint : locality.endpoints)
    sum += endpoint.weight;
  if (sum <= kMaxWeightSum) return;
  field.at("lb_endpoints")
      .add(absl::StrCat(
          "the sum of endpoint weights must be at most ", kMaxWeightSum, ", found ", sum));
}

/// The fields of a locality. They are read before the locality's endpoints.
struct LocalityTerms {
  LocalityName name;
  std::uint32_t weight = 0;
};

std::shared_ptr<Locality> begin_locality(const LocalityTerms& terms) {
  auto locality = std::make_shared<Locality>();
  locality->name = terms.name;
  locality->weight = terms.weight;
  return locality;
}

/// A locality with unfit endpoints: those that do not belong to Priority::localities. They are read
/// after all other endpoints.
struct Unfit {
  const LocalityEndpointsProto* proto = nullptr;
  LocalityTerms terms;
};

void parse_locality(const LocalityEndpointsProto& proto,
                    PriorityMap& priorities,
                    std::vector<Unfit>& unfit,
                    EndpointsSoFar& so_far,
                    const Field& field) {
  LocalityTerms terms;
  terms.weight = proto.load_balancing_weight().value();
  // A locality without a weight gets no calls (A27).
  if (terms.weight == 0) return;
  const Field name = field.at("locality");
  if (!proto.has_locality()) name.add("must be set, found none");
  terms.name = {proto.locality().region(), proto.locality().zone(), proto.locality().sub_zone()};
  if (proto.has_metadata()) check_http_proxy(proto.metadata(), field.at("metadata"));
  auto locality = begin_locality(terms);
  locality->endpoints.reserve(static_cast<std::size_t>(proto.lb_endpoints_size()));
  bool all_fit = true;
  for (int i = 0; i < proto.lb_endpoints_size() && !field.is_enough(); ++i) {
    const EndpointProto& endpoint = proto.lb_endpoints(i);
    const auto health = usable_health(endpoint, field.options());
    if (health.has_value()) {
      const Field place = field.at("lb_endpoints", static_cast<std::size_t>(i));
      locality->endpoints.push_back(parse_lb_endpoint(endpoint, *health, so_far, place));
    }
    all_fit &= health.has_value();
  }
  check_weights(*locality, field);
  priorities[proto.priority()].localities.push_back(std::move(locality));
  if (!all_fit) unfit.push_back({&proto, std::move(terms)});
}

// Returns the list for unfit endpoints of this health. Null: endpoints of this health are dropped.
std::vector<LocalityPtr>* unfit_list(HealthStatus health, Priority& priority) {
  if (health == HealthStatus::kDegraded) return &priority.degraded;
  const bool is_unhealthy = health == HealthStatus::kUnhealthy || health == HealthStatus::kTimeout;
  return is_unhealthy ? &priority.unhealthy : nullptr;
}

HealthStatus health_of(const EndpointProto& proto) {
  switch (proto.health_status()) {
    case envoy::config::core::v3::DEGRADED:
      return HealthStatus::kDegraded;
    case envoy::config::core::v3::UNHEALTHY:
      return HealthStatus::kUnhealthy;
    case envoy::config::core::v3::TIMEOUT:
      return HealthStatus::kTimeout;
    default:
      return HealthStatus::kUnknown;
  }
}

// A27 ignores unfit endpoints, so their errors must not cause a rejection. An unfit endpoint is
// left out if it is invalid, or if it has an address of another endpoint. The DEGRADED endpoints of
// a locality are all left out if the sum of their weights is too large. The same holds for its
// UNHEALTHY and TIMEOUT endpoints together.
void read_unfit(const Unfit& unfit,
                Priority& priority,
                EndpointsSoFar& so_far,
                const ParseOptions& options) {
  std::map<std::vector<LocalityPtr>*, std::shared_ptr<Locality>> made;
  for (const EndpointProto& proto : unfit.proto->lb_endpoints()) {
    if (is_abandoned(options)) return;
    const HealthStatus health = health_of(proto);
    auto* const list = unfit_list(health, priority);
    if (list == nullptr) continue;
    const ValidationErrors unsaid(options);
    std::shared_ptr<Locality>& locality = made[list];
    if (locality == nullptr) locality = begin_locality(unfit.terms);
    locality->endpoints.push_back(parse_lb_endpoint(proto, health, so_far, unsaid.top()));
    if (!unsaid.empty()) locality->endpoints.pop_back();
  }
  for (auto& [list, locality] : made) {
    const ValidationErrors unsaid(options);
    check_weights(*locality, unsaid.top());
    if (unsaid.empty() && !locality->endpoints.empty()) list->push_back(std::move(locality));
  }
}

Limits no_lower_than_by_default(Limits limits) {
  for (const NamedLimit& limit : kNamedLimits)
    limits.*limit.member = std::max(limits.*limit.member, Limits{}.*limit.member);
  return limits;
}

// Errors of unfit endpoints cause no rejection, so lowered limits are ignored here. Raised limits
// apply.
void read_all_unfit(const std::vector<Unfit>& unfit,
                    PriorityMap& priorities,
                    EndpointsSoFar& so_far,
                    ParseOptions options) {
  options.limits = no_lower_than_by_default(options.limits);
  for (const Unfit& of : unfit)
    read_unfit(of, priorities[of.proto->priority()], so_far, options);
}

// Within one priority, localities must be unique, and the sum of weights must fit into 32 bits.
void check_localities(std::uint32_t priority,
                      const std::vector<LocalityPtr>& localities,
                      const Field& field) {
  std::map<LocalityName, int> names;
  std::uint64_t sum = 0;
  for (const LocalityPtr& locality : localities) {
    sum += locality->weight;
    if (++names[locality->name] == 2) {
      field.add(absl::StrCat("locality must be unique in its priority, found ",
                             to_string(locality->name),
                             " again in priority ",
                             priority));
    }
  }
  if (sum > kMaxWeightSum) {
    field.add(absl::StrCat("the sum of locality weights of priority ",
                           priority,
                           " must be at most ",
                           kMaxWeightSum,
                           ", found ",
                           sum));
  }
}

std::vector<Priority> to_priorities(PriorityMap priorities, const Field& field) {
  std::vector<Priority> result;
  for (auto& entry : priorities) {
    const std::uint32_t number = entry.first;
    Priority& priority = entry.second;
    if (number != result.size()) {
      field.add(
          absl::StrCat("priorities must have no gaps, found ", number, " but no ", result.size()));
      return result;
    }
    check_localities(number, priority.localities, field);
    result.push_back(std::move(priority));
  }
  return result;
}

std::vector<DropCategory> parse_drops(const AssignmentProto::Policy& proto, const Field& field) {
  std::vector<DropCategory> drops;
  for (int i = 0; i < proto.drop_overloads_size() && !field.is_enough(); ++i) {
    const auto& entry = proto.drop_overloads(i);
    const Field place = field.at("drop_overloads", static_cast<std::size_t>(i));
    require_name(entry.category(), place.at("category"));
    const Field percentage = place.at("drop_percentage");
    if (!entry.has_drop_percentage()) {
      percentage.add("must be set, found none");
      continue;
    }
    drops.push_back({entry.category(), parse_fraction(entry.drop_percentage(), percentage)});
  }
  return drops;
}

void parse_overprovisioning(const AssignmentProto::Policy& proto,
                            Endpoints& endpoints,
                            const Field& field) {
  endpoints.weighted_priority_health = proto.weighted_priority_health();
  if (!proto.has_overprovisioning_factor()) return;
  endpoints.overprovisioning_percent = proto.overprovisioning_factor().value();
  if (endpoints.overprovisioning_percent == 0)
    field.at("overprovisioning_factor").add("must be greater than 0, found 0");
}

std::size_t count_endpoints(const AssignmentProto& proto) {
  std::size_t endpoints = 0;
  for (const LocalityEndpointsProto& locality : proto.endpoints()) {
    endpoints += static_cast<std::size_t>(locality.lb_endpoints_size());
  }
  return endpoints;
}

bool within_endpoint_limit(std::size_t endpoints, const Field& top) {
  const std::size_t most = top.options().limits.max_endpoints;
  if (endpoints <= most) return true;
  top.at("endpoints")
      .add_over_limit(
          "max_endpoints",
          absl::StrCat("must have at most ", most, " endpoints in all, found ", endpoints));
  return false;
}

// The endpoints that the cluster had in the last response; null if it had none.
const Endpoints* last_endpoints(const KnownResources* known, absl::string_view name) {
  const ReceivedResource* last =
      known == nullptr ? nullptr : known->find_named(ResourceType::kEndpoints, name);
  return last == nullptr ? nullptr : std::get<EndpointsPtr>(*last->resource).get();
}

Endpoints to_endpoints(const AssignmentProto& proto, const Endpoints* last, const Field& top) {
  Endpoints endpoints;
  const std::size_t count = count_endpoints(proto);
  if (!within_endpoint_limit(count, top)) return endpoints;
  PriorityMap priorities;
  EndpointsSoFar so_far;
  so_far.known = KnownAddresses(last);
  std::vector<Unfit> unfit;
  so_far.addresses.reserve(count);
  for (int i = 0; i < proto.endpoints_size() && !top.is_enough(); ++i) {
    const Field place = top.at("endpoints", static_cast<std::size_t>(i));
    parse_locality(proto.endpoints(i), priorities, unfit, so_far, place);
  }
  read_all_unfit(unfit, priorities, so_far, top.options());
  if (!so_far.exceptions.empty()) {
    endpoints.probe_exceptions =
        std::make_shared<const ProbeExceptions>(std::move(so_far.exceptions));
  }
  endpoints.priorities = to_priorities(std::move(priorities), top.at("endpoints"));
  if (endpoints.priorities.empty())
    endpoints.unweighted_localities = static_cast<std::size_t>(proto.endpoints_size());
  const Field policy = top.at("policy");
  endpoints.drops = parse_drops(proto.policy(), policy);
  parse_overprovisioning(proto.policy(), endpoints, policy);
  return endpoints;
}

}  // namespace

ReceivedResource parse_endpoints(absl::string_view bytes,
                                 const ParseOptions& options,
                                 const KnownResources* known) {
  // ClusterLoadAssignments can be large. An arena halves the cost of decoding.
  ::google::protobuf::Arena arena;
  auto* proto = ::google::protobuf::Arena::CreateMessage<AssignmentProto>(&arena);
  const bool decoded = decode(bytes, *proto);
  const std::string& name = proto->cluster_name();
  if (!decoded) return undecodable("EDS", "a ClusterLoadAssignment", bytes, *proto, name);
  ValidationErrors errors(options);
  require_name(name, errors.top().at("cluster_name"));
  auto endpoints = std::make_shared<const Endpoints>(
      to_endpoints(*proto, last_endpoints(known, name), errors.top()));
  if (!errors.empty()) return errors.refuse("EDS", name);
  return {name, Resource{std::move(endpoints)}};
}

}  // namespace signalbox::xds
