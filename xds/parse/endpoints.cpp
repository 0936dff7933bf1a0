// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/endpoints.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include <google/protobuf/arena.h>

#include "messages/endpoints.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "xds/parse/address.hpp"
#include "xds/parse/endpoint_metadata.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using AssignmentProto = envoy::config::endpoint::v3::ClusterLoadAssignment;
using EndpointProto = envoy::config::endpoint::v3::LbEndpoint;
using LocalityProto = envoy::config::endpoint::v3::LocalityLbEndpoints;
using AddressSet = absl::flat_hash_set<std::string>;
using PriorityMap = std::map<std::uint32_t, std::vector<LocalityPtr>>;

constexpr std::uint64_t kMaxWeightSum = std::numeric_limits<std::uint32_t>::max();

// nullopt: calls must not be sent there.
std::optional<HealthStatus> usable_health(const EndpointProto& proto, const ParseOptions& options) {
  switch (proto.health_status()) {
    case envoy::config::core::v3::UNKNOWN:
      return HealthStatus::kUnknown;
    case envoy::config::core::v3::HEALTHY:
      return HealthStatus::kHealthy;
    case envoy::config::core::v3::DRAINING:
      // A55-40: only sessions have a use for it.
      if (!options.session_affinity) return std::nullopt;
      return HealthStatus::kDraining;
    default:
      return std::nullopt;
  }
}

// The address is its endpoint's alone, in the whole cluster.
void add_address(const envoy::config::core::v3::Address& proto,
                 Endpoint& endpoint,
                 AddressSet& seen,
                 const Field& field) {
  const std::size_t errors_before = field.errors_so_far();
  Address address = parse_address(proto, field);
  if (field.errors_so_far() != errors_before) return;
  if (!seen.insert(address.str()).second) {
    field.add(absl::StrCat("must be unique in the cluster, found ", address.str(), " again"));
  }
  endpoint.addresses.push_back(std::move(address));
}

Endpoint parse_endpoint(const EndpointProto& proto,
                        HealthStatus health,
                        AddressSet& seen,
                        const Field& field) {
  Endpoint endpoint;
  endpoint.health = health;
  if (proto.has_load_balancing_weight()) {
    endpoint.weight = proto.load_balancing_weight().value();
    if (endpoint.weight == 0) {
      field.at("load_balancing_weight").add("must be greater than 0, found 0");
    }
  }
  const Field host = field.at("endpoint");
  if (!proto.has_endpoint()) {
    host.add("must be set, found none");
    return endpoint;
  }
  const auto& addresses = proto.endpoint();
  const int more = field.options().dualstack_endpoints ? addresses.additional_addresses_size() : 0;
  endpoint.addresses.reserve(1 + static_cast<std::size_t>(more));
  add_address(addresses.address(), endpoint, seen, host.at("address"));
  for (int i = 0; i < more; ++i) {
    const Field additional = host.at("additional_addresses", static_cast<std::size_t>(i));
    add_address(
        addresses.additional_addresses(i).address(), endpoint, seen, additional.at("address"));
  }
  require_name_length(addresses.hostname(), host.at("hostname"));
  endpoint.hostname = addresses.hostname();
  if (proto.has_metadata()) {
    const Field metadata = field.at("metadata");
    endpoint.hash_key = hash_key_of(proto.metadata(), metadata);
    endpoint.http_proxy = http_proxy_of(proto.metadata(), metadata);
  }
  return endpoint;
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

void parse_locality(const LocalityProto& proto,
                    PriorityMap& priorities,
                    AddressSet& seen,
                    const Field& field) {
  auto locality = std::make_shared<Locality>();
  locality->weight = proto.load_balancing_weight().value();
  // Without a weight, no call goes there (A27).
  if (locality->weight == 0) return;
  const Field name = field.at("locality");
  if (!proto.has_locality()) name.add("must be set, found none");
  locality->name = {
      proto.locality().region(), proto.locality().zone(), proto.locality().sub_zone()};
  std::string proxy;
  if (proto.has_metadata()) proxy = http_proxy_of(proto.metadata(), field.at("metadata"));
  locality->endpoints.reserve(static_cast<std::size_t>(proto.lb_endpoints_size()));
  for (int i = 0; i < proto.lb_endpoints_size(); ++i) {
    const auto health = usable_health(proto.lb_endpoints(i), field.options());
    if (!health.has_value()) continue;
    Endpoint& endpoint = locality->endpoints.emplace_back(
        parse_endpoint(proto.lb_endpoints(i),
                       *health,
                       seen,
                       field.at("lb_endpoints", static_cast<std::size_t>(i))));
    // A86: an endpoint's own proxy, else its locality's.
    if (endpoint.http_proxy.empty()) endpoint.http_proxy = proxy;
  }
  check_weights(*locality, field);
  priorities[proto.priority()].push_back(std::move(locality));
}

// Within one priority, each locality stands once, and the weights fit into 32 bits.
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
  for (auto& [priority, localities] : priorities) {
    if (priority != result.size()) {
      field.add(absl::StrCat(
          "priorities must have no gaps, found ", priority, " but no ", result.size()));
      return result;
    }
    check_localities(priority, localities, field);
    result.push_back(Priority{std::move(localities)});
  }
  return result;
}

std::vector<DropCategory> parse_drops(const AssignmentProto::Policy& proto, const Field& field) {
  std::vector<DropCategory> drops;
  for (int i = 0; i < proto.drop_overloads_size(); ++i) {
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
  for (const LocalityProto& locality : proto.endpoints()) {
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

Endpoints to_endpoints(const AssignmentProto& proto, const Field& top) {
  Endpoints endpoints;
  const std::size_t count = count_endpoints(proto);
  if (!within_endpoint_limit(count, top)) return endpoints;
  PriorityMap priorities;
  AddressSet seen;
  seen.reserve(count);
  for (int i = 0; i < proto.endpoints_size(); ++i) {
    parse_locality(
        proto.endpoints(i), priorities, seen, top.at("endpoints", static_cast<std::size_t>(i)));
  }
  endpoints.priorities = to_priorities(std::move(priorities), top.at("endpoints"));
  const Field policy = top.at("policy");
  endpoints.drops = parse_drops(proto.policy(), policy);
  parse_overprovisioning(proto.policy(), endpoints, policy);
  return endpoints;
}

}  // namespace

ReceivedResource parse_endpoints(absl::string_view bytes, const ParseOptions& options) {
  // The one resource that is large: an arena halves what decoding costs.
  ::google::protobuf::Arena arena;
  auto* proto = ::google::protobuf::Arena::CreateMessage<AssignmentProto>(&arena);
  const bool decoded = decode(bytes, *proto);
  const std::string& name = proto->cluster_name();
  if (!decoded) return undecodable("EDS", "a ClusterLoadAssignment", bytes, *proto, name);
  ValidationErrors errors(options);
  require_name(name, errors.top().at("cluster_name"));
  auto endpoints = std::make_shared<const Endpoints>(to_endpoints(*proto, errors.top()));
  if (!errors.empty()) return errors.refuse("EDS", name);
  return {name, Resource{std::move(endpoints)}};
}

}  // namespace signalbox::xds
