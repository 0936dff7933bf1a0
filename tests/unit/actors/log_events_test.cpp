// SPDX-License-Identifier: Apache-2.0
#include "actors/log_events.hpp"

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;

const ClusterName kOrders{"orders"};

}  // namespace

TEST_CASE("log events: changes of the priority", "[actors][log]") {
  CHECK_FALSE(line_of(PriorityActive{kOrders, 0, std::nullopt}));
  // A cluster without an active priority gives no line if it had none before, as at the start.
  CHECK_FALSE(line_of(PriorityActive{kOrders, -1, std::nullopt}));
  // A failover also gives the event FailedOver, which has the line. Its PriorityActive gives none.
  CHECK_FALSE(line_of(PriorityActive{kOrders, 1, 0}));
  CHECK(line_of(PriorityActive{kOrders, -1, 0}) ==
        LogLine{LogLevel::kWarning,
                LogKind::kPriority,
                "cluster orders: no priority can take calls any more; the last one was 0"});
  CHECK(line_of(FailedOver{kOrders, FailoverDirection::kDown, FailoverReason::kTimedOut}) ==
        LogLine{LogLevel::kWarning,
                LogKind::kPriority,
                "cluster orders: calls go to a lower priority: the one before did not connect in "
                "time"});
  CHECK(line_of(FailedOver{kOrders, FailoverDirection::kUp, FailoverReason::kRecovered}) ==
        LogLine{LogLevel::kInfo,
                LogKind::kPriority,
                "cluster orders: calls go to a higher priority: it has recovered"});
  CHECK(line_of(FailoverEnded{kOrders, 1500ms}) ==
        LogLine{LogLevel::kInfo,
                LogKind::kPriority,
                "cluster orders: a priority can take calls again, after 1.500 s without one"});
}

TEST_CASE("log events: ejections, and what was only found", "[actors][log]") {
  OutliersDetected found{
      kOrders, DetectionMethod::kSuccessRate, DetectionOutcome::kEjected, /*endpoints=*/2};
  CHECK(line_of(found) == LogLine{LogLevel::kWarning,
                                  LogKind::kEjection,
                                  "cluster orders: outlier detection ejected 2 endpoints "
                                  "(success_rate)"});
  found.outcome = DetectionOutcome::kEnforcementPercentage;
  CHECK_FALSE(line_of(found));
  CHECK_FALSE(line_of(ConnectionLost{kOrders}));
}

TEST_CASE("log events: a control plane is lost, and back", "[actors][log]") {
  const LogLine lost{LogLevel::kWarning,
                     LogKind::kControlPlane,
                     "xDS server xds:1 is lost: refused; resources that it sent stay in use"};
  CHECK(server_line("xds:1", {absl::UnavailableError("refused")}) == lost);
  CHECK(server_line("xds:1", {absl::UnavailableError("xDS server xds:1: refused")}) == lost);
  CHECK(server_line("xds:1", {absl::OkStatus()}) ==
        LogLine{LogLevel::kInfo, LogKind::kControlPlane, "xDS server xds:1 is back"});
}

TEST_CASE("log events: a server of load reports that does not do as it should", "[actors][log]") {
  CHECK(load_line("xds:1", {"it asks for nothing"}) ==
        LogLine{LogLevel::kWarning,
                LogKind::kControlPlane,
                "load reports to xds:1: it asks for nothing"});
}

TEST_CASE("log events: refused resources, a few by their errors", "[actors][log]") {
  ResourcesReceived received;
  received.type = ResourceType::kCluster;
  received.version = "7";
  CHECK_FALSE(refused_line("xds:1", received));
  received.resources.push_back({.name = "a", .resource = absl::InvalidArgumentError("no type")});
  CHECK(refused_line("xds:1", received)->text ==
        "xDS server xds:1: CDS version 7: refused 1 resource: a: no type");
  for (int i = 0; i < 100; ++i)
    received.resources.push_back({.name = "b", .resource = absl::InvalidArgumentError("bad")});
  received.unnamed_errors = {"no name"};
  received.more_unnamed = 3;
  const auto line = refused_line("xds:1", received);
  REQUIRE(line);
  CHECK(line->level == LogLevel::kWarning);
  CHECK(line->kind == LogKind::kConfigRefused);
  CHECK(line->text ==
        "xDS server xds:1: CDS version 7: refused 105 resources: a: no type; b: bad; b: bad; b: "
        "bad");
  CHECK(refused_line("xds:1", ResponseRefused{RejectionReason::kLimit}).text ==
        "xDS server xds:1: refused a whole response (limit); the last good configuration stays in "
        "use");
}

}  // namespace signalbox::actors
