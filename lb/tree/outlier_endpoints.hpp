// SPDX-License-Identifier: Apache-2.0
//
// outlier_endpoints — the endpoints that outlier_detection judges: their calls, and their
// ejections.
//
//   data plane ─▶ CallResultCounter::ended ─▶ striped counts
//                                            │ tally(): calls since the last tally
//   Endpoints ─▶ [OutlierEndpoints: calls, multiplier, ejection] ─▶ trackers(), unhealthy()
//                                            ▲ eject(), age()
//
// An endpoint is identified by its set of addresses; order and priority do not matter (A61, A75-3).
// An endpoint that stays in the list keeps its counts, multiplier and ejection.
//
// The gRFC has two buckets of counts, which it zeroes and swaps at each sweep. Here counts only
// rise, and an interval's calls are the difference to the counts at the previous sweep. So no call
// is lost at a swap.
//
// Source: gRFC A50 ("Outlier Detection Behavior"), A61 (endpoints of several addresses).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "lb/tree/outlier_rules.hpp"
#include "messages/counting/call_tracker.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// The call result counter (A50) of one endpoint. Every call that is not OK has failed, cancelled
/// calls included. A call that never reached the endpoint does not count. Thread-safe; each stripe
/// of threads counts in a cache line that no other stripe writes.
class CallResultCounter final : public CallTracker {
 public:
  CallResultCounter() : successes_(UseCounter::take()), failures_(UseCounter::take()) {}

  ~CallResultCounter() override {
    successes_.give_back();
    failures_.give_back();
  }

  void ended(const CallEnd& end) const noexcept override {
    if (end.code.has_value()) (*end.code == 0 ? successes_ : failures_).add(1);
  }

  /// The calls since the object was made. Both counts only rise.
  std::uint64_t successes() const { return static_cast<std::uint64_t>(successes_.sum()); }

  std::uint64_t failures() const { return static_cast<std::uint64_t>(failures_.sum()); }

 private:
  const UseCounter successes_;
  const UseCounter failures_;
};

/// An ejected endpoint, for explanations.
struct EjectedEndpoint {
  Address address;  ///< The first of its sorted addresses.
  Instant since;
  Instant until;  ///< The first sweep after this instant ends the ejection.
  absl::Status why;

  friend bool operator==(const EjectedEndpoint&, const EjectedEndpoint&) = default;
};

class OutlierEndpoints {
 public:
  /// `retirement`: destroys counters that no call uses any more; null in tests.
  explicit OutlierEndpoints(std::shared_ptr<Retirement> retirement)
      : retirement_(std::move(retirement)) {}

  /// Replaces the list of endpoints; null: none. The list has the endpoints in
  /// Priority::localities and Priority::degraded, not those in Priority::unhealthy. A new endpoint
  /// begins at zero. An endpoint that leaves the list is forgotten, with its ejection.
  void update(const EndpointsPtr& endpoints);

  std::size_t size() const { return order_.size(); }

  /// Ends the interval of counting. Returns each endpoint's calls since the previous tally(), in
  /// the order of the configuration.
  std::vector<CallTally> tally();

  /// Ejects an endpoint, given by its index in the last tally().
  void eject(std::size_t endpoint, Instant now, DetectionMethod why);

  /// Ends a sweep. Ends every ejection that has lasted its time. Lowers by one, but not below 0,
  /// the multiplier of each endpoint that was not ejected before this call.
  void age(const OutlierDetection& settings, Instant now);

  std::uint32_t multiplier(std::size_t endpoint) const { return order_[endpoint]->multiplier; }

  /// The tracker of each address; null: there are no endpoints.
  std::shared_ptr<const TrackEndpoints::Table> trackers() const;

  /// All addresses of ejected endpoints, with the reason; null: no endpoint is ejected.
  std::shared_ptr<const UnhealthyEndpoints> unhealthy() const;

  /// The ejected endpoints.
  std::vector<EjectedEndpoint> ejected(const OutlierDetection& settings) const;

  /// Whether the result of trackers() (or of unhealthy()) may have changed since this was last
  /// called.
  bool take_tracker_changes() { return std::exchange(trackers_changed_, false); }

  bool take_health_changes() { return std::exchange(health_changed_, false); }

 private:
  struct Ejection {
    Instant since;
    DetectionMethod why = DetectionMethod::kSuccessRate;
  };

  struct Judged {
    std::vector<Address> addresses;  ///< Sorted.
    std::shared_ptr<const CallResultCounter> calls;
    std::uint64_t successes = 0;  ///< The successes in `calls` at the last tally.
    std::uint64_t failures = 0;
    std::uint32_t multiplier = 0;
    std::optional<Ejection> ejection;
    std::uint64_t named_in = 0;  ///< The number of the newest list with this endpoint.
  };

  void take_in(const Endpoint& endpoint);
  void forget_the_unnamed();

  std::shared_ptr<Retirement> retirement_;
  absl::flat_hash_map<std::vector<Address>, std::unique_ptr<Judged>> judged_;
  std::vector<Judged*> order_;  ///< In the configured order.
  EndpointsPtr list_;
  std::uint64_t lists_ = 0;
  // True at first: tables that an earlier actor of this policy sent before it died must be replaced
  // (D2 of outlier_detection).
  bool trackers_changed_ = true;
  bool health_changed_ = true;
};

}  // namespace signalbox::lb
