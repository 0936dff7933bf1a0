// SPDX-License-Identifier: Apache-2.0
//
// A RuntimeStatus with one target, four clusters, endpoints in several states, and changes of
// priorities, for tests of its renderers.

#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

/// The time `seconds` after 2026-11-25T19:00:00Z.
inline WallTime at_second(int seconds) {
  return WallTime(std::chrono::seconds(1'795'633'200 + seconds));
}

inline EndpointStatus endpoint_of(AddressStatus address) {
  return {.addresses = {std::move(address)}};
}

/// The aggregate cluster `all` has the leaves `near`, which has failed, and `far`, which serves
/// calls. The cluster `broken` does not exist.
inline RuntimeStatus some_status() {
  using std::chrono::seconds;
  RuntimeStatus status;
  status.version = "1.2.3";
  status.node_id = "me";
  status.started = at_second(0);
  status.made = at_second(600);
  status.ready = true;
  TargetStatus& target = status.targets.emplace_back();
  target.name = "xds:///orders";
  target.state = ConnectivityState::kReady;
  target.since = at_second(100);
  target.ready = true;
  target.generation = 7;
  target.configured = at_second(90);

  ClusterStatus all{.name = ClusterName("all"), .kind = ClusterKind::kAggregate};
  all.leaves = {ClusterName("near"), ClusterName("far")};
  all.active = 1;
  all.priorities = {{.name = "near",
                     .started = true,
                     .state = ConnectivityState::kTransientFailure,
                     .since = at_second(300),
                     .reason = absl::UnavailableError("refused")},
                    {.name = "far",
                     .started = true,
                     .state = ConnectivityState::kReady,
                     .since = at_second(310)}};
  ClusterStatus near{.name = ClusterName("near"), .aggregate = ClusterName("all")};
  near.service_name = "near-service";
  near.max_requests = 1024;
  near.priorities = {{.name = "child0",
                      .started = true,
                      .state = ConnectivityState::kConnecting,
                      .since = at_second(595),
                      .window_ends = at_second(605)}};
  near.priorities[0].localities = {{.name = {"r", "z", ""}, .weight = 3}};
  near.priorities[0].localities[0].endpoints = {
      endpoint_of({.address = Address("10.0.0.1:80"),
                   .state = EndpointState::kTransientFailure,
                   .connectivity = ConnectivityState::kTransientFailure,
                   .since = at_second(300),
                   .reason = absl::UnavailableError("connection refused")}),
      endpoint_of({.address = Address("[2001:db8::1]:443"),
                   .state = EndpointState::kEjected,
                   .connectivity = ConnectivityState::kReady,
                   .since = at_second(500),
                   .reason = absl::UnavailableError("too many failures"),
                   .ejections = 2,
                   .calls_in_flight = 1})};
  ClusterStatus far{.name = ClusterName("far"), .aggregate = ClusterName("all")};
  far.max_requests = 1024;
  far.active = 0;
  far.priorities = {{.name = "child0",
                     .started = true,
                     .state = ConnectivityState::kReady,
                     .since = at_second(310)},
                    {.name = "child1"}};
  far.priorities[0].load_percent = 80;
  far.priorities[0].localities = {{}};
  far.priorities[0].localities[0].endpoints = {
      endpoint_of({.address = Address("10.0.1.1:80"),
                   .state = EndpointState::kReady,
                   .connectivity = ConnectivityState::kReady,
                   .since = at_second(310),
                   .calls_in_flight = 12})};
  far.priorities[0].localities[0].endpoints[0].hostname = "far.example";
  far.priorities[0].localities[0].endpoints[0].eds_health = HealthStatus::kHealthy;
  far.priorities[1].localities = {{}};
  far.priorities[1].localities[0].endpoints = {endpoint_of({.address = Address("10.0.2.1:80")})};
  ClusterStatus broken{.name = ClusterName("broken"), .kind = ClusterKind::kFailed};
  broken.failure = absl::NotFoundError("no such cluster");
  target.clusters = {all, near, far, broken};

  status.changes = {{.number = 1,
                     .at = at_second(100),
                     .target = "xds:///orders",
                     .cluster = ClusterName("all"),
                     .to = 0,
                     .to_name = "near",
                     .reason = PriorityChangeReason::kFirst},
                    {.number = 2,
                     .at = at_second(300),
                     .target = "xds:///orders",
                     .cluster = ClusterName("all"),
                     .from = 0,
                     .from_name = "near",
                     .reason = PriorityChangeReason::kLost,
                     .details = "connection refused",
                     .window_left = seconds(10)},
                    {.number = 3,
                     .at = at_second(310),
                     .target = "xds:///orders",
                     .cluster = ClusterName("all"),
                     .to = 1,
                     .to_name = "far",
                     .reason = PriorityChangeReason::kTimedOut,
                     .details = "connection refused",
                     .without = seconds(10)}};
  return status;
}

}  // namespace signalbox::channel
