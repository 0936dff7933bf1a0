// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/outlier_detection.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/trace.hpp"
#include "lb/tree/outlier_endpoints.hpp"
#include "lb/tree/outlier_rules.hpp"
#include "lb/tree/pass_through.hpp"

namespace signalbox::lb {
namespace {

/// The ejected endpoints, for explanations.
struct Ejections {
  ClusterName cluster;
  std::vector<EjectedEndpoint> endpoints;

  friend bool operator==(const Ejections&, const Ejections&) = default;
};

using EjectionsPtr = std::shared_ptr<const Ejections>;

/// Picks as the child's picker does, and adds the tracker that counts calls of the picked endpoint.
class CountingPicker final : public Picker {
 public:
  CountingPicker(PickerPtr child, EjectionsPtr ejections)
      : child_(std::move(child)), ejections_(std::move(ejections)) {}

  const SessionHint* session_hint() const override { return child_.session_hint(); }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    const std::string source = "CDS " + ejections_->cluster.str();
    if (ejections_->endpoints.empty())
      trace.tell({"outlier_detection", "no endpoint is ejected", "", source});
    const auto now = now_of(trace);
    for (const EjectedEndpoint& endpoint : ejections_->endpoints) {
      std::string why(endpoint.why.message());
      if (now) {
        absl::StrAppend(&why, "; for ", shown(*now - endpoint.since));
        if (endpoint.until > *now)
          absl::StrAppend(&why, ", and ", shown(endpoint.until - *now), " more");
      }
      trace.tell({"outlier_detection", "set aside: " + endpoint.address.str(), why, source});
    }
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    PickResult result = child_.ask(args, sink);
    const auto* complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr || complete->endpoint == nullptr) return result;
    const CallTracker* const tracker = complete->endpoint->tracker.get();
    if (tracker != nullptr) result.trackers.add(*tracker);
    return result;
  }

  ChildPicker child_;
  EjectionsPtr ejections_;  ///< Never null.
};

class OutlierDetectionPolicy final : public PassThrough {
 public:
  explicit OutlierDetectionPolicy(PolicyContext context)
      : seed_(context.seed), endpoints_(std::move(context.retirement)) {}

 private:
  // --- configuration ---

  Given give(const ConfigUpdated& update, Instant now, LbEffects& effects) override {
    config_ = config_of<OutlierDetectionConfig>(update);
    arm_timer(now, effects);
    endpoints_.update(counts() ? update.endpoints : nullptr);
    tell_map(effects);
    ejections_are_old_ = true;
    return {config_.child, update.endpoints};
  }

  bool counts() const {
    return config_.settings && (config_.settings->success_rate.has_value() ||
                                config_.settings->failure_percentage.has_value());
  }

  // --- the timer ---

  void on_timer(const TimerFired& fired, Instant now, LbEffects& effects) override {
    if (fired.timer == timer_) sweep(now, effects);
  }

  void arm_timer(Instant now, LbEffects& effects) {
    if (!counts()) return disarm_timer(effects);
    const Duration interval = std::max(config_.settings->interval, kShortestSweepInterval);
    // The interval has not changed, so the running timer stays (D1 of outlier_detection.hpp).
    if (timer_ && interval == interval_) return;
    const Instant since = timer_ ? timer_started_ : now;
    disarm_timer(effects);
    interval_ = interval;
    start_timer(since, now, effects);
  }

  void disarm_timer(LbEffects& effects) {
    if (timer_) effects.push_back(CancelTimer{*timer_});
    timer_.reset();
  }

  void start_timer(Instant since, Instant now, LbEffects& effects) {
    timer_started_ = since;
    timer_ = TimerId{"sweep", ++timers_};
    effects.push_back(StartTimer{*timer_, std::max(interval_ - (now - since), Duration::zero())});
  }

  // --- the sweep: judging all endpoints ---

  void sweep(Instant now, LbEffects& effects) {
    // Publishes the last sweep's ejections for explanations, if the child has not reported since
    // that sweep (D3 of outlier_detection.hpp).
    publish(effects);
    const auto draw = [&] { return draw_below(seed_, Salt::kEndpoint, 100, ++draws_); };
    const auto detections = detect_outliers(*config_.settings, endpoints_.tally(), draw);
    for (const Detection& found : detections) {
      if (found.outcome == DetectionOutcome::kEjected)
        endpoints_.eject(found.endpoint, now, found.method);
    }
    endpoints_.age(*config_.settings, now);
    observe(detections, effects);
    tell_map(effects);
    start_timer(now, now, effects);
  }

  void observe(const std::vector<Detection>& detections, LbEffects& effects) const {
    std::array<std::array<std::uint64_t, kDetectionOutcomes>, kDetectionMethods> counts{};
    for (const Detection& found : detections)
      ++counts[static_cast<std::size_t>(found.method)][static_cast<std::size_t>(found.outcome)];
    for (std::size_t method = 0; method < kDetectionMethods; ++method) {
      for (std::size_t outcome = 0; outcome < kDetectionOutcomes; ++outcome) {
        if (counts[method][outcome] == 0) continue;
        effects.push_back(Observe{OutliersDetected{config_.cluster,
                                                   static_cast<DetectionMethod>(method),
                                                   static_cast<DetectionOutcome>(outcome),
                                                   counts[method][outcome]}});
      }
    }
  }

  // --- effects for the subchannel map, pickers ---

  void tell_map(LbEffects& effects) {
    if (endpoints_.take_tracker_changes()) effects.push_back(TrackEndpoints{endpoints_.trackers()});
    if (endpoints_.take_health_changes()) {
      ejections_are_old_ = true;
      effects.push_back(SetEndpointHealth{HealthJudge::kOutlierDetection, endpoints_.unhealthy()});
    }
  }

  PickerPtr show(const PickerPtr& child) override {
    if (!counts()) {
      wrapped_ = picker_ = nullptr;
      return child;
    }
    const bool has_other_ejections = renew_ejections();
    if (wrapped_ != child || has_other_ejections) {
      wrapped_ = child;
      picker_ = std::make_shared<const CountingPicker>(child, ejections_);
    }
    return picker_;
  }

  /// Makes ejections_ anew if it may be old. Returns whether it has changed, so that a new picker_
  /// must show it.
  bool renew_ejections() {
    if (!std::exchange(ejections_are_old_, false)) return false;
    Ejections present{config_.cluster, endpoints_.ejected(*config_.settings)};
    if (ejections_ != nullptr && *ejections_ == present) return false;
    ejections_ = std::make_shared<const Ejections>(std::move(present));
    return true;
  }

  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  OutlierDetectionConfig config_;
  OutlierEndpoints endpoints_;
  Duration interval_{};
  std::optional<TimerId> timer_;  ///< Set exactly while calls are counted.
  Instant timer_started_{};
  std::uint64_t timers_ = 0;
  bool ejections_are_old_ = true;  ///< The endpoints or settings changed since ejections_ was made.
  EjectionsPtr ejections_;         ///< The ejections that picker_ shows.
  PickerPtr wrapped_;              ///< The child's picker that picker_ asks.
  PickerPtr picker_;
};

}  // namespace

std::unique_ptr<Policy> make_outlier_detection(PolicyContext context) {
  return std::make_unique<OutlierDetectionPolicy>(std::move(context));
}

}  // namespace signalbox::lb
