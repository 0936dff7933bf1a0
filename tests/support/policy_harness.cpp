// SPDX-License-Identifier: Apache-2.0
#include "tests/support/policy_harness.hpp"

#include <array>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/pick/pickers.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::test {
namespace {

std::string in_seconds(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  return absl::StrCat(seconds, "s");
}

std::string to_text(FailoverReason reason) {
  switch (reason) {
    case FailoverReason::kFailed:
      return "failed";
    case FailoverReason::kTimedOut:
      return "timed out";
    case FailoverReason::kRecovered:
      return "recovered";
    case FailoverReason::kReconfigured:
      break;
  }
  return "reconfigured";
}

std::string to_text(DetectionOutcome outcome) {
  switch (outcome) {
    case DetectionOutcome::kEjected:
      return "ejected";
    case DetectionOutcome::kEnforcementPercentage:
      return "not enforced";
    case DetectionOutcome::kMaxEjectionOverflow:
      break;
  }
  return "too many";
}

// The addresses of the table as " a b", or " none".
std::string names_in(const std::shared_ptr<const UnhealthyEndpoints>& table) {
  if (table == nullptr || table->empty()) return " none";
  std::string names;
  for (const auto& [address, why] : *table)
    absl::StrAppend(&names, " ", address.str());
  return names;
}

std::string to_text(ConnectivityState state) {
  return std::string(to_string(state));
}

std::string to_text(const char* outcome, const absl::Status& status) {
  return absl::StrCat(
      outcome, " ", absl::StatusCodeToString(status.code()), ": ", status.message());
}

}  // namespace

std::string to_text(const Observation& observation) {
  return std::visit(
      Overloaded{
          [](const PriorityActive& it) {
            return absl::StrCat("active ", it.cluster.str(), " ", it.priority);
          },
          [](const FailedOver& it) {
            return absl::StrCat("failover ",
                                it.cluster.str(),
                                it.direction == FailoverDirection::kUp ? " up, " : " down, ",
                                to_text(it.reason));
          },
          [](const FailoverEnded& it) {
            return absl::StrCat("failover-ended ", it.cluster.str(), " ", in_seconds(it.duration));
          },
          [](const OutliersDetected& it) {
            return absl::StrCat("outliers ",
                                it.cluster.str(),
                                " ",
                                it.endpoints,
                                it.method == DetectionMethod::kSuccessRate ? " by success rate, "
                                                                           : " by failures, ",
                                to_text(it.outcome));
          },
          [](const CircuitBreakerSet& it) {
            return absl::StrCat("breaker ", it.cluster.str(), " ", it.gate->limit());
          },
          [](const SessionsHeld& it) {
            return absl::StrCat("sessions ", it.cluster.str(), " hold ", it.held);
          },
          [](const SessionsSwept& it) {
            return absl::StrCat("sweep ", it.cluster.str(), " released ", it.released);
          },
          [](const TierLoad& it) {
            return absl::StrCat("load ",
                                it.cluster.str(),
                                " ",
                                it.leaf.str(),
                                "/",
                                it.priority,
                                " ",
                                it.percent ? absl::StrCat(*it.percent) : "none");
          },
          [](const auto&) { return std::string("other observation"); },
      },
      observation);
}

std::string to_text(const LbEffect& effect) {
  return std::visit(
      Overloaded{
          [](const StartChild& it) { return "start " + it.child.str(); },
          [](const UpdateChild& it) { return "update " + it.child.str(); },
          [](const StopChild& it) { return "stop " + it.child.str(); },
          [](const ExitIdleChild& it) { return "exit-idle " + it.child.str(); },
          [](const StartTimer& it) {
            return absl::StrCat("timer ", it.timer.name, " ", in_seconds(it.delay));
          },
          [](const CancelTimer& it) { return "cancel " + it.timer.name; },
          [](const Publish& it) { return "publish " + to_text(it.state); },
          [](const ReportApplied& it) { return absl::StrCat("applied ", it.generation); },
          [](const RebuildSoon&) { return std::string("rebuild-soon"); },
          [](const ServeSubchannels& it) {
            return absl::StrCat("serve ", it.settings.cluster.str(), " ", it.generation);
          },
          [](const SettleSubchannels& it) { return absl::StrCat("settle ", it.generation); },
          [](const CloseSubchannels&) { return std::string("close"); },
          [](const AcquireSubchannel& it) { return "acquire " + it.address.str(); },
          [](const ReleaseSubchannel& it) { return "release " + it.address.str(); },
          [](const Connect& it) { return "connect " + it.address.str(); },
          [](const SetEndpointHealth& it) { return "unhealthy" + names_in(it.unhealthy); },
          [](const TrackEndpoints& order) {
            return absl::StrCat("track ", order.trackers == nullptr ? 0 : order.trackers->size());
          },
          [](const KeepSessions& order) {
            return absl::StrCat("keep-sessions ", order.marks == nullptr ? 0 : order.marks->size());
          },
          [](const WatchLoad& order) {
            return absl::StrCat("watch-load ", order.entries.size(), " ", in_seconds(order.period));
          },
          [](const RequestReresolution&) { return std::string("re-resolve"); },
          [](const Observe& it) { return to_text(it.observation); },
      },
      effect);
}

bool is_for_status(const LbEffect& effect) {
  const auto* seen = std::get_if<Observe>(&effect);
  return seen != nullptr && (std::holds_alternative<PrioritiesSeen>(seen->observation) ||
                             std::holds_alternative<PriorityMoved>(seen->observation));
}

std::string to_text(AffinityResult result) {
  static constexpr std::array<const char*, kAffinityResults> kWords{"none",
                                                                    "new",
                                                                    "hit",
                                                                    "hit draining",
                                                                    "queued",
                                                                    "created",
                                                                    "unknown host",
                                                                    "unhealthy",
                                                                    "bad cookie",
                                                                    "other cluster"};
  return kWords.at(static_cast<std::size_t>(result));
}

std::string to_text(const PickResult& result) {
  return std::visit(
      Overloaded{
          [](const Complete& it) { return "complete " + it.connection->address().str(); },
          [](const Queue&) { return std::string("queue"); },
          [](const Fail& it) { return to_text("fail", it.status); },
          [](const Drop& it) { return to_text("drop", it.status); },
      },
      result.outcome);
}

PickerPtr named_picker(const std::string& name) {
  return lb::make_fail_picker(absl::UnavailableError(name));
}

std::vector<std::string> PolicyHarness::step(const LbEvent& event) {
  std::vector<std::string> texts;
  for (LbEffect& effect : policy_->step(event, now_)) {
    if (!is_for_status(effect)) texts.push_back(to_text(effect));
    if (const auto* start = std::get_if<StartTimer>(&effect)) {
      timers_.emplace(now_ + start->delay, start->timer);
    } else if (const auto* cancel = std::get_if<CancelTimer>(&effect)) {
      std::erase_if(timers_, [&](const auto& entry) { return entry.second == cancel->timer; });
    }
    effects_.push_back(std::move(effect));
  }
  return texts;
}

std::vector<std::string> PolicyHarness::update(LbConfigPtr config,
                                               XdsConfigPtr xds,
                                               EndpointsPtr endpoints) {
  return step(
      ConfigUpdated{++generation_, std::move(config), std::move(xds), std::move(endpoints)});
}

std::vector<std::string> PolicyHarness::child(const std::string& name, ConnectivityState state) {
  const std::string text = absl::StrCat(name, " ", to_text(state));
  const auto status = state == kFailure ? absl::UnavailableError(name + " failed") : absl::Status();
  return step(ChildStateChanged{ChildName(name), state, status, named_picker(text)});
}

std::vector<std::string> PolicyHarness::applied(const std::string& name) {
  return applied(name, generation_);
}

std::vector<std::string> PolicyHarness::applied(const std::string& name, Generation generation) {
  return step(ChildApplied{ChildName(name), generation});
}

std::vector<std::string> PolicyHarness::advance(Duration duration) {
  const Instant until = now_ + duration;
  std::vector<std::string> texts;
  while (!timers_.empty() && timers_.begin()->first <= until) {
    const auto [due, timer] = *timers_.begin();
    timers_.erase(timers_.begin());
    now_ = due;
    for (std::string& text : step(TimerFired{timer}))
      texts.push_back(std::move(text));
  }
  now_ = until;
  return texts;
}

const Publish* PolicyHarness::published() const {
  const Publish* last = nullptr;
  for (const LbEffect& effect : effects_) {
    if (const auto* publish = std::get_if<Publish>(&effect)) last = publish;
  }
  return last;
}

std::string PolicyHarness::pick(const std::string& cluster, std::uint64_t seed) const {
  const ClusterName name(cluster);
  PickArgs args;
  args.cluster = &name;
  args.seed = seed;
  return to_text(published()->picker->pick(args));
}

}  // namespace signalbox::test
