// SPDX-License-Identifier: Apache-2.0
//
// LocalityCounts — counts the calls to one locality, for the load report to the control plane.
//
//   data-plane threads ─▶ begun(), ended(), add_named() ─▶ [LocalityCounts] ─▶ totals() ─▶ book
//
// The stripes are those of striped.hpp: a call writes only the stripe of its thread. Counts only
// grow. The LoadBook subtracts what it has reported, so a count that comes between two reports is
// in the later one.
//
//   names   │ 0 … 2: utilisations │ 3 … 130: a table by hash, filled once and never emptied │
//   values  │ a block for each stripe that has had a value: {calls, total} for each name    │
//
// An endpoint chooses the names of the values in its own load report, so the number of names is
// limited to kMostNames. The first value of a name and the first value of a stripe allocate memory,
// when a call ends. begun(), which runs during a pick, never allocates.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "messages/counting/striped.hpp"
#include "messages/load_reporting.hpp"

namespace signalbox {

/// Everything that one LocalityCounts has counted.
struct LocalityTotals {
  std::int64_t issued = 0;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
  /// Values that were not counted: their name was one too many, memory was short, or the value was
  /// negative, not finite, or so large that the sum of all stripes might have become infinite.
  std::int64_t lost_values = 0;
  std::array<MetricSum, 3> utilizations = {};  ///< Indexed by LocalityCounts::Utilization.
  /// The key is the metric's name in the report to the control plane.
  std::map<std::string, MetricSum> named = {};
};

/// Returns what `seen` has above `reported`. A thread adds a value first and counts its call next,
/// so a reading between the two sees the value without its call. If `seen` has no call that
/// `reported` lacks, returns zero and sets `seen` to `reported`. Then the next reading has the
/// value with its call.
MetricSum take_unreported(MetricSum& seen, const MetricSum& reported);

/// The prefix of a named metric's name in CDS, and in load reports by gRFC A85.
inline constexpr absl::string_view kNamedMetricPrefix = "named_metrics.";

class LocalityCounts {
 public:
  /// The most names of named metrics in a locality.
  static constexpr std::size_t kMostNames = 64;

  enum class Utilization : std::uint8_t { kCpu, kMem, kApplication };

  LocalityCounts() = default;
  LocalityCounts(const LocalityCounts&) = delete;
  LocalityCounts& operator=(const LocalityCounts&) = delete;
  ~LocalityCounts();

  /// Prefetches the cache line that begun() will write.
  void prefetch() const { calls_.prefetch(kIssued); }

  void begun() const noexcept { calls_.add(kIssued, 1); }

  void ended(bool succeeded) const noexcept { calls_.add(succeeded ? kSucceeded : kFailed, 1); }

  void add_utilization(Utilization which, double value) const noexcept;

  /// `prefixed`: the load report gives the metric the name "named_metrics." + name.
  void add_named(absl::string_view name, bool prefixed, double value) const noexcept;

  /// Returns everything that was counted until now. May run while calls begin and end. A call that
  /// is counted as ended is also counted as begun. Values of calls that end at this moment may be
  /// missing; the next totals have them.
  LocalityTotals totals() const;

 private:
  static constexpr std::size_t kIssued = 0;
  static constexpr std::size_t kSucceeded = 1;
  static constexpr std::size_t kFailed = 2;
  static constexpr std::size_t kLost = 3;
  static constexpr std::size_t kUtilizations = 3;
  static constexpr std::size_t kPlaces = 128;  ///< Twice kMostNames, so that look-ups are short.

  struct MetricName {
    std::string text;  ///< As in the report.
    bool prefixed;
  };

  struct Value {
    std::atomic<std::int64_t> calls{0};
    std::atomic<double> total{0};
  };

  struct Block {
    std::array<Value, kUtilizations + kPlaces> values;
  };

  struct Names {
    std::array<std::atomic<const MetricName*>, kPlaces> places{};
    std::atomic<std::size_t> taken{0};
  };

  std::size_t place_of(absl::string_view name, bool prefixed) const noexcept;
  void add_value(std::size_t index, double value) const noexcept;
  MetricSum sum_of(std::size_t index) const;

  StripedCounters<4> calls_;
  mutable std::atomic<Names*> names_{nullptr};
  mutable std::array<std::atomic<Block*>, kStripes> blocks_{};
};

using LocalityCountsPtr = std::shared_ptr<const LocalityCounts>;

}  // namespace signalbox
