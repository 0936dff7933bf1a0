// SPDX-License-Identifier: Apache-2.0
//
// EndpointWeight — the weight of one endpoint, from the endpoint's own load reports (gRFC A58).
//
//   end of a call ─────▶ WeightTracker ──┬▶ weight_of(report) ─▶ [EndpointWeight] ─▶ policy
//   stream of reports ─▶ WeightListener ─┘
//
//   weight = qps / (utilisation + eps / qps × penalty)
//
// The utilisation is application_utilization, else the greatest of the configured metrics, else
// cpu_utilization (A114). A report without qps or without a utilisation changes nothing.
//
// A weight is used only when blackout_period has passed since the first report with a weight on the
// endpoint's connection. After weight_expiration_period without such a report the weight is stale.
// Once ask() has found it stale, the next report begins the blackout anew. With a blackout_period
// of 0 a new connection keeps the weight.
//
// By configuration, reports come from calls or from a stream (A58). They come on any thread, and
// write only the atomics of their endpoint, which have a cache line of their own. The policy's
// actor reads them when it makes a scheduler.

#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/connectivity.hpp"
#include "messages/counting/call_tracker.hpp"
#include "messages/counting/striped.hpp"
#include "messages/lb_config.hpp"
#include "messages/load_listener.hpp"
#include "messages/load_report.hpp"

namespace signalbox::lb {

/// How a weight is computed from a report.
struct WeightRules {
  double error_utilization_penalty = 1;
  /// From the configuration's metric_names_for_computing_utilization.
  std::vector<std::string> metric_names;
  /// True: reports come on a stream of the endpoint, and those of calls are not read.
  bool streamed = false;

  friend bool operator==(const WeightRules&, const WeightRules&) = default;
};

using WeightRulesPtr = std::shared_ptr<const WeightRules>;

/// The weight that a report gives its endpoint; 0: none, for example because qps is missing.
double weight_of(const LoadReport& report, const WeightRules& rules);

enum class WeightUse : std::uint8_t {
  kUsable,
  kNotYetUsable,  ///< No report has come yet, or the blackout is not over.
  kStale          ///< The last report is older than weight_expiration_period.
};

class alignas(kCacheLine) EndpointWeight {
 public:
  struct Periods {
    Duration blackout{};
    Duration expiration{};
  };

  struct Answer {
    double weight = 0;  ///< 0 unless kUsable.
    WeightUse use = WeightUse::kNotYetUsable;
  };

  /// Stores the weight from a report that came at `now`. Any thread may call it. `weight` is not 0.
  void update(double weight, Instant now) const;

  /// Must be called when the endpoint has a new connection. Begins the blackout anew.
  void connected() const { non_empty_since_.store(kNever, std::memory_order_relaxed); }

  /// The weight to use at `now`, and whether it is usable. Only the policy's actor may call it.
  Answer ask(Instant now, const Periods& periods) const;

 private:
  static constexpr Instant::rep kNever = std::numeric_limits<Instant::rep>::max();

  // The times are in ticks of Instant. The three fields are not written at once, so ask() may
  // combine two reports. This changes its answer no more than a slightly earlier or later call
  // would.
  mutable std::atomic<Instant::rep> non_empty_since_{kNever};
  mutable std::atomic<Instant::rep> last_update_{kNever};
  mutable std::atomic<double> weight_{0};
};

using EndpointWeightPtr = std::shared_ptr<const EndpointWeight>;

/// Gives the reports of one endpoint's stream to its EndpointWeight.
class WeightListener final : public LoadListener {
 public:
  WeightListener(EndpointWeightPtr weight, WeightRulesPtr rules)
      : weight_(std::move(weight)), rules_(std::move(rules)) {}

  void reported(const LoadReport& report, Instant now) const noexcept override;

 private:
  const EndpointWeightPtr weight_;
  const WeightRulesPtr rules_;
};

/// Gives the load reports of one endpoint's calls to its EndpointWeight. Its rules never change,
/// because calls read them on any thread; new rules need a new tracker.
class WeightTracker final : public CallTracker {
 public:
  WeightTracker(const EndpointWeightPtr& weight, const WeightRulesPtr& rules);

  void ended(const CallEnd& end) const noexcept override;

  bool wants_load() const noexcept override { return listener_ == nullptr; }

  const EndpointWeightPtr& weight() const { return weight_; }

  /// The receiver of the reports on the endpoint's stream. Null: the rules take the reports of
  /// calls.
  const LoadListenerPtr& listener() const { return listener_; }

 private:
  const EndpointWeightPtr weight_;
  const WeightRulesPtr rules_;
  const LoadListenerPtr listener_;
};

}  // namespace signalbox::lb
