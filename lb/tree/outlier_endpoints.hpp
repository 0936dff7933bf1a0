// SPDX-License-Identifier: Apache-2.0
//
// outlier_endpoints — the endpoints that outlier_detection judges: their calls, and their
// sentences.
//
//   data plane ─▶ EndpointCalls::ended ─▶ striped counts
//                                            │ tally(): what came since the last tally
//   Endpoints ─▶ [OutlierEndpoints: calls, multiplier, ejection] ─▶ trackers(), unhealthy()
//                                            ▲ eject(), age()
//
// An endpoint is its set of addresses, whatever their order and in whichever priority they stand
// (A61, A75-3); one that stays in the list keeps what is known of it.
//
// The gRFC's two buckets, of which one is zeroed and swapped in at each sweep, are here the
// difference of two sums: counts only rise, and no call is lost between two buckets.
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

/// Counts the calls of one endpoint: each that is not OK has failed, a cancelled one too; one that
/// never reached the endpoint says nothing. Thread-safe; no thread writes what another one reads.
class EndpointCalls final : public CallTracker {
 public:
  EndpointCalls() : successes_(UseCounter::take()), failures_(UseCounter::take()) {}

  ~EndpointCalls() override {
    successes_.give_back();
    failures_.give_back();
  }

  void ended(const CallEnd& end) const noexcept override {
    if (end.code.has_value()) (*end.code == 0 ? successes_ : failures_).add(1);
  }

  /// Since it was made; neither ever falls.
  std::uint64_t successes() const { return static_cast<std::uint64_t>(successes_.sum()); }

  std::uint64_t failures() const { return static_cast<std::uint64_t>(failures_.sum()); }

 private:
  const UseCounter successes_;
  const UseCounter failures_;
};

/// An endpoint that is set aside, for explanations.
struct EjectedEndpoint {
  Address address;  ///< Its first.
  Instant since;
  Instant until;  ///< It comes back with the first sweep after that.
  absl::Status why;
};

class OutlierEndpoints {
 public:
  /// `retirement` is for the counters; null in tests.
  explicit OutlierEndpoints(std::shared_ptr<Retirement> retirement)
      : retirement_(std::move(retirement)) {}

  /// The endpoints from now on, with those DEGRADED ones that get calls; null: none. Whoever is new
  /// begins at zero; whoever leaves the list is forgotten, with his ejection.
  void update(const EndpointsPtr& endpoints);

  std::size_t size() const { return order_.size(); }

  /// Closes the interval: what each endpoint's calls came to since the one before was closed, in
  /// the order of the configuration.
  std::vector<CallTally> tally();

  /// `endpoint`: its place in the last tally.
  void eject(std::size_t endpoint, Instant now, DetectionMethod why);

  /// The end of a sweep: whose time is over comes back, and the multiplier of who is not ejected
  /// falls by one.
  void age(const OutlierDetection& settings, Instant now);

  std::uint32_t multiplier(std::size_t endpoint) const { return order_[endpoint]->multiplier; }

  /// Who counts the calls to which address; null: nobody.
  std::shared_ptr<const TrackEndpoints::Table> trackers() const;

  /// All addresses of those that are ejected, and why; null: nobody is.
  std::shared_ptr<const UnhealthyEndpoints> unhealthy() const;

  /// Those that are ejected.
  std::vector<EjectedEndpoint> ejected(const OutlierDetection& settings) const;

  /// Whether trackers(), or unhealthy(), may have changed since it was asked last.
  bool take_tracker_changes() { return std::exchange(trackers_changed_, false); }

  bool take_health_changes() { return std::exchange(health_changed_, false); }

 private:
  struct Ejection {
    Instant since;
    DetectionMethod why = DetectionMethod::kSuccessRate;
  };

  struct Judged {
    std::vector<Address> addresses;  ///< Sorted.
    std::shared_ptr<const EndpointCalls> calls;
    std::uint64_t successes = 0;  ///< Of `calls`, when it was tallied last.
    std::uint64_t failures = 0;
    std::uint32_t multiplier = 0;
    std::optional<Ejection> ejection;
    std::uint64_t named_in = 0;  ///< The newest list that has it.
  };

  void take_in(const Endpoint& endpoint);
  void forget_the_unnamed();

  std::shared_ptr<Retirement> retirement_;
  absl::flat_hash_map<std::vector<Address>, std::unique_ptr<Judged>> judged_;
  std::vector<Judged*> order_;  ///< As configured.
  EndpointsPtr list_;
  std::uint64_t lists_ = 0;
  // Nothing has been told yet: a predecessor may have told something.
  bool trackers_changed_ = true;
  bool health_changed_ = true;
};

}  // namespace signalbox::lb
