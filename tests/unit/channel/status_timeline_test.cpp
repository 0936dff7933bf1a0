// SPDX-License-Identifier: Apache-2.0
//
// What changed from one status to the next.
#include "channel/status_timeline.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::channel {
namespace {

using std::chrono::seconds;

RuntimeStatus status_with(const std::optional<EndpointState>& state,
                          ConnectivityState connectivity) {
  AddressStatus address;
  address.address = Address("10.0.0.1:80");
  address.state = state;
  if (connectivity == ConnectivityState::kTransientFailure)
    address.reason = absl::UnavailableError("connection refused");
  PriorityStatus priority;
  priority.localities.resize(1);
  priority.localities[0].endpoints.push_back({{address}, "", HealthStatus::kUnknown, 1});
  ClusterStatus cluster;
  cluster.name = ClusterName("c");
  cluster.priorities.push_back(priority);
  if (connectivity == ConnectivityState::kReady) cluster.active = 0;
  TargetStatus target;
  target.name = "xds:///orders";
  target.state = connectivity;
  target.ready = connectivity == ConnectivityState::kReady;
  target.clusters.push_back(cluster);
  RuntimeStatus status;
  status.targets.push_back(target);
  return status;
}

std::vector<std::string> lines(const StatusTimeline& timeline, std::size_t from) {
  std::vector<std::string> all;
  for (std::size_t i = from; i < timeline.entries().size(); ++i) {
    const TimelineEntry& entry = timeline.entries()[i];
    all.push_back(entry.kind + " " + entry.subject + ": " + entry.text);
  }
  return all;
}

}  // namespace

TEST_CASE("status timeline: each difference is an entry, and what is the same is not",
          "[channel][replay]") {
  StatusTimeline timeline;
  timeline.add(seconds(1), status_with(EndpointState::kReady, ConnectivityState::kReady));
  CHECK(lines(timeline, 0) == std::vector<std::string>{"target : READY, ready, configuration 0",
                                                       "cluster c: priority 0 of 1",
                                                       "endpoint c 10.0.0.1:80: READY"});
  timeline.add(seconds(2), status_with(EndpointState::kReady, ConnectivityState::kReady));
  CHECK(timeline.entries().size() == 3);
  timeline.add(seconds(3),
               status_with(EndpointState::kTransientFailure, ConnectivityState::kTransientFailure));
  CHECK(lines(timeline, 3) ==
        std::vector<std::string>{"target : TRANSIENT_FAILURE, not ready, configuration 0",
                                 "cluster c: no priority of 1",
                                 "endpoint c 10.0.0.1:80: TRANSIENT_FAILURE: connection refused"});
  CHECK(timeline.entries().back().at == seconds(3));
  timeline.add(seconds(4), RuntimeStatus());
  CHECK(lines(timeline, 6) == std::vector<std::string>{"cluster c: gone",
                                                       "endpoint c 10.0.0.1:80: gone",
                                                       "target : gone"});
}

TEST_CASE("status timeline: what is logged is an entry, unless a status has it",
          "[channel][replay]") {
  StatusTimeline timeline;
  for (const LogKind kind : {LogKind::kConfigApplied,
                             LogKind::kPriority,
                             LogKind::kControlPlane,
                             LogKind::kConfigRefused})
    timeline.add(seconds(1), LogLine{LogLevel::kWarning, kind, std::string(to_string(kind)), 0});
  CHECK(lines(timeline, 0) ==
        std::vector<std::string>{"log : control_plane", "log : config_refused"});
  CHECK(timeline.entries()[0].at == seconds(1));
  CHECK(timeline.entries()[0].target.empty());
}

TEST_CASE("status timeline: each change of priority is an entry once", "[channel][replay]") {
  RuntimeStatus status;
  PriorityChange change;
  change.number = 1;
  change.target = "xds:///orders";
  change.cluster = ClusterName("near");
  change.aggregate = ClusterName("all");
  change.from = 0;
  change.to = 1;
  change.reason = PriorityChangeReason::kFailed;
  change.details = "connection refused";
  status.changes.push_back(change);
  StatusTimeline timeline;
  timeline.add(seconds(1), status);
  timeline.add(seconds(2), status);
  CHECK(lines(timeline, 0) ==
        std::vector<std::string>{
            "priority all / near: priority 0 to priority 1 (failed): connection refused"});
}

}  // namespace signalbox::channel
