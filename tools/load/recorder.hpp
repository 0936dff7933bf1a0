// SPDX-License-Identifier: Apache-2.0
//
// LoadRecorder — adds the calls of one process of a side up to a LoadSide.
//
//   sender, taker ─ rings ─▶ Collector ─▶ [LoadRecorder] ─▶ LoadSide
//                                            └▶ take_second() ─▶ live line
//
// One thread uses a recorder. Ended calls and acts come in the order of their times. Calls that
// were due before 0 belong to the warm-up and are left out.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/load/ended_call.hpp"
#include "tools/load/fault_analysis.hpp"
#include "tools/load/histogram.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

/// Where an endpoint is. A place that the runtime tries later has a higher rank: a later cluster of
/// an aggregate, or a worse priority of the same cluster.
struct RankedPlace {
  LoadPlace place;
  std::optional<std::uint32_t> rank;

  bool operator==(const RankedPlace&) const = default;
};

/// The measured calls of the last second, for the live line.
struct LoadSecond {
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t max_ns = 0;
  std::vector<LoadBucket> latencies;  ///< Of calls that ended OK, so that seconds can be added.
};

class LoadRecorder {
 public:
  /// `duration`: the length of the measured part.
  LoadRecorder(std::string side, std::size_t sessions, std::chrono::nanoseconds duration);

  /// Gives the next index to this address: EndedCall::endpoint is 1 for the first one added.
  void add_endpoint(std::string address);
  /// From now on, calls to this address count as calls to this place.
  void place(const std::string& address, const RankedPlace& place);
  void act_began(std::int64_t at_ns, bool is_fault);

  void sent(const SentCall& call);
  void ended(const EndedCall& call);

  LoadSecond take_second();

  /// `ran`: how long the measured part was, which is less than planned if it was cut.
  /// `messages`: status messages of failed calls, with the number of calls. Call nothing after
  /// finish().
  LoadSide finish(std::chrono::nanoseconds ran,
                  std::uint64_t lateness_limit_ns,
                  const std::map<std::string, std::uint64_t>& messages);

 private:
  struct Endpoint {
    std::uint32_t place = 0;
    std::optional<std::uint32_t> rank;
  };

  LoadBin& bin_of(std::int64_t due_ns);
  std::uint32_t index_of(const LoadPlace& place);

  LoadSide side_;
  FaultAnalysis analysis_;
  std::vector<std::int64_t> acts_;
  std::map<std::string, RankedPlace> known_places_;  // The place of each address.
  std::vector<Endpoint> endpoints_;                  // In the order of LoadSide::endpoints.
  LatencyHistogram lateness_;
  // The number of calls sent in each second of the run.
  std::vector<std::uint64_t> sent_by_second_;
  std::uint64_t closed_loop_ = 0;
  LoadSecond second_;
  LatencyHistogram second_latency_;
};

/// Sets `is_valid` and `reason` by the other members.
void judge(LoadValidity& validity);

}  // namespace signalbox::tools
