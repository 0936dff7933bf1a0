// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/weighted_round_robin.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "lb/config_of.hpp"
#include "lb/leaf/endpoint_weight.hpp"
#include "lb/leaf/petiole.hpp"
#include "lb/leaf/stride_picker.hpp"
#include "lb/leaf/stride_scheduler.hpp"
#include "lb/leaf/warmth.hpp"
#include "lb/pick/pickers.hpp"

namespace signalbox::lb {
namespace {

constexpr char kTimerName[] = "weights";
constexpr Duration kShortestUpdatePeriod = std::chrono::milliseconds(100);

WeightRulesPtr rules_of(const WeightedRoundRobinConfig& config, const PolicyOptions& options) {
  return std::make_shared<const WeightRules>(
      WeightRules{config.error_utilization_penalty,
                  config.metric_names_for_computing_utilization,
                  config.oob_reporting_period.has_value() && options.load_streams});
}

absl::string_view origin_of(const StrideScheduler& scheduler, const Warmth& warmth) {
  if (scheduler.has_weights())
    return warmth.is_uneven() ? "from its load reports and slow start" : "from its load reports";
  return warmth.is_uneven() ? "from slow start alone while fewer than two report their load"
                            : "as all have while fewer than two report their load";
}

// The locality of all endpoints, as text. Empty: they are of several localities, or of none.
std::string locality_in(const EndpointsPtr& endpoints) {
  const LocalityName* found = nullptr;
  if (endpoints == nullptr) return "";
  for (const Priority& priority : endpoints->priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      if (found != nullptr && *found != locality->name) return "";
      found = &locality->name;
    }
  }
  return found == nullptr ? "" : to_string(*found);
}

const WeightTracker& tracker_of(const EndpointSet::Member& member) {
  return static_cast<const WeightTracker&>(*member.counter);
}

class WeightedRoundRobin final : public Petiole {
 public:
  WeightedRoundRobin(PolicyContext context,
                     EndpointSet::MakeCounter make_counter,
                     std::shared_ptr<WeightRulesPtr> rules)
      : Petiole("weighted_round_robin",
                std::move(context),
                EndpointSet::Connects::kAtOnce,
                std::move(make_counter)),
        rules_(std::move(rules)) {}

 private:
  bool configure(const ConfigUpdated& update) override {
    const auto& config = config_of<WeightedRoundRobinConfig>(update);
    // The running timer is ignored if the period is another one now; follow_up() starts a new one.
    if (config.weight_update_period != config_.weight_update_period) is_timed_ = false;
    if (context().options.metrics_by_locality) locality_ = locality_in(update.endpoints);
    if (std::exchange(config_, config) == config) return false;
    WeightRulesPtr rules = rules_of(config, context().options);
    if (*rules == **rules_) return true;
    *rules_ = std::move(rules);
    endpoints().replace_counters([this](const CallTrackerPtr& old) {
      return make_tracked<WeightTracker>(
          context().retirement, static_cast<const WeightTracker&>(*old).weight(), *rules_);
    });
    return true;
  }

  PickerPtr make_picker() override {
    if (state() == ConnectivityState::kConnecting) return make_queue_picker();
    if (state() == ConnectivityState::kTransientFailure) return make_fail_picker(failure());
    begin_blackouts();
    Warmth warmth(config_.slow_start, endpoints(), now());
    scheduler_ = make_scheduler(warmth, taken_.emplace());
    std::vector<CallTrackerPtr> trackers;
    if (!(*rules_)->streamed) trackers = endpoints().ready_counters();
    return make_stride_picker({"weighted_round_robin",
                               origin_of(scheduler_, warmth),
                               endpoints().ready(),
                               std::move(trackers),
                               scheduler_,
                               std::move(warmth)},
                              draw(context().seed, Salt::kEndpoint, ++edition_));
  }

  // Begins the blackout of each endpoint with a new connection (I2 of weighted_round_robin.hpp). A
  // weak_ptr identifies the earlier connection without keeping it alive.
  void begin_blackouts() {
    std::vector<std::pair<const EndpointWeight*, std::weak_ptr<const Connection>>> connected;
    for (std::size_t at = 0; at < endpoints().size(); ++at) {
      const EndpointSet::Member& member = endpoints()[at];
      if (member.connection == nullptr) continue;
      const EndpointWeight* const weight = tracker_of(member).weight().get();
      const auto known = connections_.find(weight);
      const bool is_same = known != connections_.end() &&
                           !known->second.owner_before(member.connection) &&
                           !member.connection.owner_before(known->second);
      if (!is_same) weight->connected();
      connected.emplace_back(weight, member.connection);
    }
    connections_ = {connected.begin(), connected.end()};
  }

  // Makes a scheduler of the present weights, and describes it in `taken`.
  StrideScheduler make_scheduler(const Warmth& warmth, WeightsTaken& taken) {
    const EndpointWeight::Periods periods{config_.blackout_period,
                                          config_.weight_expiration_period};
    taken.cluster = context().cluster;
    taken.target = context().options.target;
    taken.locality = locality_;
    taken.in_slow_start = Warmth::count(config_.slow_start, endpoints(), now());
    taken.weights.reserve(endpoints().count(ConnectivityState::kReady));
    for (std::size_t at = 0; at < endpoints().size(); ++at) {
      const EndpointSet::Member& member = endpoints()[at];
      if (member.connection == nullptr) continue;
      const EndpointWeight::Answer answer = tracker_of(member).weight()->ask(now(), periods);
      taken.weights.push_back(answer.weight);
      if (answer.use == WeightUse::kNotYetUsable) ++taken.not_yet_usable;
      if (answer.use == WeightUse::kStale) ++taken.stale;
    }
    StrideScheduler scheduler(taken.weights, warmth.factors());
    taken.falls_back = !scheduler.has_weights();
    return scheduler;
  }

  // The timer of weight_update_period: requests a picker only if the scaled weights have changed
  // (I3 of weighted_round_robin.hpp).
  bool fire(const TimerId& timer) override {
    if (timer.name != kTimerName) return false;
    if (timer.generation != timer_ || !std::exchange(is_timed_, false)) return true;
    if (state() != ConnectivityState::kReady) return true;
    WeightsTaken taken;
    if (make_scheduler({config_.slow_start, endpoints(), now()}, taken) != scheduler_) {
      want_picker();
    } else {
      taken_ = std::move(taken);
    }
    return true;
  }

  // Asks for streams of load reports (WatchLoad): of all READY endpoints, or of none if the rules
  // take the reports of calls. make_picker() has begun the blackouts of new connections before.
  void published(LbEffects& effects) override {
    tell_weights(effects);
    WatchLoad wanted;
    if ((*rules_)->streamed) {
      wanted.period = config_.oob_reporting_period.value_or(Duration::zero());
      wanted.entries.reserve(endpoints().count(ConnectivityState::kReady));
      for (std::size_t at = 0; at < endpoints().size(); ++at) {
        const EndpointSet::Member& member = endpoints()[at];
        if (member.connection == nullptr) continue;
        wanted.entries.push_back({member.connection, tracker_of(member).listener()});
      }
    }
    if (wanted == watched_) return;
    watched_ = wanted;
    effects.push_back(std::move(wanted));
  }

  void tell_weights(LbEffects& effects) {
    if (!taken_) return;
    effects.push_back(Observe{*std::move(taken_)});
    taken_.reset();
  }

  void follow_up(LbEffects& effects) override {
    tell_weights(effects);
    if (is_timed_ || state() != ConnectivityState::kReady) return;
    is_timed_ = true;
    effects.push_back(StartTimer{{kTimerName, ++timer_},
                                 std::max(config_.weight_update_period, kShortestUpdatePeriod)});
  }

  WeightedRoundRobinConfig config_;
  std::string locality_;  // For the metrics; empty: see WeightsTaken::locality.
  // The current rules. The function that makes trackers for new members shares this pointer; only
  // the policy's actor uses it.
  const std::shared_ptr<WeightRulesPtr> rules_;
  StrideScheduler scheduler_;
  std::optional<WeightsTaken> taken_;  // Not reported yet (I5).
  WatchLoad watched_;  // The last one sent. Its connections live no longer than the picker's.
  absl::flat_hash_map<const EndpointWeight*, std::weak_ptr<const Connection>> connections_;
  std::uint64_t edition_ = 0;
  std::uint64_t timer_ = 0;
  bool is_timed_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const WeightedRoundRobinConfig& config, PolicyContext context) {
  auto rules = std::make_shared<WeightRulesPtr>(rules_of(config, context.options));
  auto make_tracker = [retirement = context.retirement, rules] {
    return make_tracked<WeightTracker>(
        retirement, std::make_shared<const EndpointWeight>(), *rules);
  };
  return std::make_unique<WeightedRoundRobin>(
      std::move(context), std::move(make_tracker), std::move(rules));
}

}  // namespace signalbox::lb
