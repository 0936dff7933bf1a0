// SPDX-License-Identifier: Apache-2.0
#include "channel/status_of.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "actors/io/grpc_connector.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::channel {
namespace {

using actors::ClusterPlace;
using actors::SubchannelPiece;
using actors::SubchannelPieces;
using actors::TargetPieces;

// The calls that use the connection now, or all the connections to which it leads (A105).
std::int64_t calls_on(const Connection& connection) {
  const auto* const grpc = dynamic_cast<const actors::GrpcConnection*>(&connection);
  const lb::StreamLanes* const lanes = grpc != nullptr ? grpc->lanes() : nullptr;
  return lanes != nullptr ? lanes->calls() : connection.uses();
}

AddressStatus address_status(const Address& address,
                             const SubchannelPieces* known,
                             const Moment& now) {
  AddressStatus status;
  status.address = address;
  if (known == nullptr) return status;
  const auto found = known->find(address);
  if (found == known->end()) return status;
  const SubchannelPiece& piece = found->second;
  status.state = piece.state;
  status.connectivity = piece.raw;
  status.since = now.of(piece.since);
  status.reason = piece.why;
  status.ejections = piece.ejections;
  if (const auto connection = piece.connection.lock())
    status.calls_in_flight = calls_on(*connection);
  return status;
}

// Adds the locality's endpoints. A Priority lists one locality up to three times: in `localities`,
// `degraded` and `unhealthy`. The status shows the locality once, with the endpoints of all
// three lists.
void add(std::vector<LocalityStatus>& localities,
         const Locality& locality,
         const SubchannelPieces* known,
         const Moment& now) {
  auto place = std::ranges::find(localities, locality.name, &LocalityStatus::name);
  if (place == localities.end())
    place = localities.insert(place, {.name = locality.name, .weight = locality.weight});
  for (const Endpoint& endpoint : locality.endpoints) {
    EndpointStatus& shown = place->endpoints.emplace_back();
    shown.hostname = endpoint.hostname;
    shown.eds_health = endpoint.health;
    shown.weight = endpoint.weight;
    for (const Address& address : endpoint.addresses)
      shown.addresses.push_back(address_status(address, known, now));
  }
}

void show(PriorityStatus& status, const PrioritySeen& seen, const Moment& now) {
  status.name = seen.name.str();
  status.started = seen.started;
  if (!seen.started) return;
  status.state = seen.state;
  status.since = now.of(seen.since);
  status.reason = seen.status;
  if (seen.window_ends) status.window_ends = now.of(*seen.window_ends);
}

// Sets the priority's state to that of its best address. Used when no `priority` policy reports a
// state, as in tiered mode.
void show_best(PriorityStatus& status) {
  static constexpr std::array kBestFirst{ConnectivityState::kReady,
                                         ConnectivityState::kConnecting,
                                         ConnectivityState::kIdle,
                                         ConnectivityState::kTransientFailure};
  const auto rank = [](const AddressStatus& address) {
    return std::ranges::find(kBestFirst, address.connectivity);
  };
  const AddressStatus* best = nullptr;
  for (const LocalityStatus& locality : status.localities) {
    for (const EndpointStatus& endpoint : locality.endpoints) {
      for (const AddressStatus& address : endpoint.addresses) {
        if (address.state && (best == nullptr || rank(address) < rank(*best))) best = &address;
      }
    }
  }
  if (best == nullptr) return;
  status.started = true;
  status.state = best->connectivity;
  status.since = best->since;
  if (best->connectivity == ConnectivityState::kTransientFailure) status.reason = best->reason;
}

void add_priorities(ClusterStatus& cluster,
                    const EndpointsPtr& endpoints,
                    const TargetPieces& pieces,
                    const Moment& now) {
  const ClusterPlace place{cluster.name, cluster.aggregate};
  const auto subchannels = pieces.subchannels.find(place);
  const SubchannelPieces* known =
      subchannels == pieces.subchannels.end() ? nullptr : &subchannels->second;
  const auto seen = pieces.priorities.find(place);
  const PrioritiesSeen* choice = seen == pieces.priorities.end() ? nullptr : seen->second.get();
  if (endpoints != nullptr) {
    for (const Priority& priority : endpoints->priorities) {
      PriorityStatus& shown = cluster.priorities.emplace_back();
      for (const auto* list : priority.lists()) {
        for (const LocalityPtr& locality : *list)
          add(shown.localities, *locality, known, now);
      }
    }
  }
  for (std::size_t at = 0; at < cluster.priorities.size(); ++at) {
    PriorityStatus& shown = cluster.priorities[at];
    const auto load = pieces.loads.find({place, at});
    if (load != pieces.loads.end()) shown.load_percent = load->second;
    if (choice != nullptr && at < choice->priorities.size()) {
      show(shown, choice->priorities[at], now);
    } else if (choice == nullptr) {
      show_best(shown);
    }
  }
  if (choice != nullptr && choice->active && *choice->active < cluster.priorities.size())
    cluster.active = choice->active;
}

void describe(ClusterStatus& status, const Cluster& cluster) {
  std::visit(Overloaded{
                 [&](const EdsDiscovery& eds) { status.service_name = eds.service_name; },
                 [&](const DnsDiscovery& dns) {
                   status.kind = ClusterKind::kDns;
                   status.service_name = dns.name.str();
                 },
                 [&](const AggregateDiscovery&) { status.kind = ClusterKind::kAggregate; },
             },
             cluster.discovery);
  if (status.kind != ClusterKind::kAggregate) status.max_requests = cluster.max_concurrent_requests;
}

class Assembly {
 public:
  Assembly(TargetStatus& target, const TargetPieces& pieces, AggregateMode mode, const Moment& now)
      : target_(target), pieces_(pieces), mode_(mode), now_(now) {}

  void add(const ClusterName& name, const ClusterName& aggregate) {
    ClusterStatus status;
    status.name = name;
    status.aggregate = aggregate;
    const auto found = pieces_.applied.xds->clusters.find(name);
    const bool is_known = found != pieces_.applied.xds->clusters.end();
    if (!is_known || !found->second.ok()) {
      status.kind = ClusterKind::kFailed;
      status.failure = is_known ? found->second.status()
                                : absl::NotFoundError("the cluster is not in the configuration");
      target_.clusters.push_back(std::move(status));
      return;
    }
    const ClusterConfig& config = **found->second;
    describe(status, *config.cluster);
    std::visit(Overloaded{
                   [&](const LeafEndpoints& leaf) {
                     add_priorities(status, leaf.endpoints, pieces_, now_);
                     if (leaf.endpoints == nullptr)
                       status.failure = absl::UnavailableError(leaf.resolution_note);
                     target_.clusters.push_back(std::move(status));
                   },
                   [&](const AggregateLeaves& aggregated) {
                     status.mode = config.cluster->aggregate_mode.value_or(mode_);
                     add_aggregate(std::move(status), aggregated.leaves);
                   },
               },
               config.children);
  }

 private:
  void add_aggregate(ClusterStatus status, const std::vector<ClusterName>& leaves) {
    status.leaves = leaves;
    const auto seen = pieces_.priorities.find(ClusterPlace{status.name, {}});
    if (seen != pieces_.priorities.end()) {
      for (const PrioritySeen& leaf : seen->second->priorities)
        show(status.priorities.emplace_back(), leaf, now_);
      status.active = seen->second->active;
    }
    const ClusterName name = status.name;
    target_.clusters.push_back(std::move(status));
    for (const ClusterName& leaf : leaves)
      add(leaf, name);
  }

  TargetStatus& target_;
  const TargetPieces& pieces_;
  const AggregateMode mode_;
  const Moment& now_;
};

}  // namespace

TargetStatus status_of(const std::string& target,
                       const TargetPieces& pieces,
                       AggregateMode mode,
                       const Moment& now) {
  TargetStatus status;
  status.name = target;
  status.state = pieces.state;
  if (pieces.since) status.since = now.of(*pieces.since);
  status.ready = pieces.ready;
  status.failure = pieces.failure;
  status.generation = pieces.generation;
  if (pieces.applied.config == nullptr || pieces.applied.xds == nullptr) return status;
  status.configured = now.of(pieces.applied_at);
  const auto* tree = std::get_if<ClusterManagerConfig>(pieces.applied.config.get());
  if (tree == nullptr) return status;
  Assembly assembly(status, pieces, mode, now);
  for (const auto& [name, child] : tree->children)
    assembly.add(name, {});
  return status;
}

void add_calls(TargetStatus& status, const CallerStats& callers) {
  constexpr std::size_t kOk = 0;
  status.calls_succeeded = callers.calls(kOk);
  std::int64_t failed = 0;
  for (std::size_t code = kOk + 1; code < kStatusCodes; ++code)
    failed += callers.calls(code);
  status.calls_failed = failed;
}

PriorityChange status_of(const actors::ChangeLog::Change& change, const Moment& now) {
  const PriorityMoved& move = change.move;
  return {.number = change.number,
          .at = now.of(move.at),
          .target = change.target,
          .cluster = move.cluster,
          .aggregate = move.aggregate,
          .from = move.from,
          .to = move.to,
          .from_name = move.from_name.str(),
          .to_name = move.to_name.str(),
          .reason = move.reason,
          .details = move.details,
          .without = move.without,
          .window_left = move.window_left};
}

}  // namespace signalbox::channel
