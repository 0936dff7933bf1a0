// SPDX-License-Identifier: Apache-2.0
//
// LiveCounts — the measured calls of one process until now, for `load --metrics`.
//
//   engine ─ SentCall, EndedCall ─▶ [LiveCounts] ─ a line of JSON ─▶ parent ─▶ LiveMetrics
//
// The values are sums since the beginning of the measured part, so a lost or repeated line changes
// nothing. Calls that were due in the warm-up are left out, as in the report.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include <nlohmann/json.hpp>

#include "tools/load/ended_call.hpp"

namespace signalbox::tools {

/// The upper bounds of the histograms' buckets. Each bound belongs to its bucket.
inline constexpr std::array<std::chrono::microseconds, 17> kLiveBounds{
    std::chrono::microseconds(50),
    std::chrono::microseconds(100),
    std::chrono::microseconds(250),
    std::chrono::microseconds(500),
    std::chrono::milliseconds(1),
    std::chrono::microseconds(2'500),
    std::chrono::milliseconds(5),
    std::chrono::milliseconds(10),
    std::chrono::milliseconds(25),
    std::chrono::milliseconds(50),
    std::chrono::milliseconds(100),
    std::chrono::milliseconds(250),
    std::chrono::milliseconds(500),
    std::chrono::seconds(1),
    std::chrono::milliseconds(2'500),
    std::chrono::seconds(5),
    std::chrono::seconds(10)};

/// How often times fell between the bounds; the last bucket is above all of them.
struct LiveTimes {
  std::array<std::uint64_t, kLiveBounds.size() + 1> buckets{};
  std::uint64_t sum_ns = 0;

  /// A negative time counts as 0.
  void record(std::int64_t ns);
  void add(const LiveTimes& other);

  bool operator==(const LiveTimes&) const = default;
};

struct LiveCounts {
  std::uint64_t scheduled = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  std::map<int, std::uint64_t> codes;  ///< Calls that ended, by call_code.
  LiveTimes ok;                        ///< From due until the end, of calls that ended OK.
  LiveTimes failed;                    ///< The same of calls that failed.
  LiveTimes lateness;                  ///< From due until sent.

  void add(const SentCall& call);
  void add(const EndedCall& call);
  void add(const LiveCounts& other);

  /// Calls that were sent and have not ended.
  std::uint64_t in_flight() const;

  bool operator==(const LiveCounts&) const = default;
};

nlohmann::json live_counts_json(const LiveCounts& counts);
/// Reads the object that live_counts_json() makes. Throws nlohmann's exception for any other JSON.
LiveCounts live_counts_of_json(const nlohmann::json& json);

}  // namespace signalbox::tools
