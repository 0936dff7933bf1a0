// SPDX-License-Identifier: Apache-2.0
#include "tools/load/fault_analysis.hpp"

#include <optional>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools::fault_analysis_test {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint16_t kUnavailable = 14;

EndedCall call(std::int64_t due_ms, std::int64_t ended_ms, std::uint16_t code = 0) {
  return {
      .due_ns = due_ms * kMs, .sent_ns = due_ms * kMs, .ended_ns = ended_ms * kMs, .code = code};
}

EndedCall session_call(std::int64_t ended_ms, std::int32_t session, std::uint32_t endpoint) {
  EndedCall made = call(ended_ms - 1, ended_ms);
  made.session = session;
  made.endpoint = endpoint;
  return made;
}

// Bins of 10 calls each. The calls of bin i take latency_ms[i]; 0: none of them ends OK.
std::vector<LoadBin> bins_of(const std::vector<std::uint64_t>& latency_ms) {
  std::vector<LoadBin> bins;
  for (const std::uint64_t latency : latency_ms) {
    LoadBin bin{.scheduled = 10, .sent = 10};
    const auto bucket =
        static_cast<std::uint32_t>(LatencyHistogram::bucket_of(latency * 1'000'000));
    if (latency > 0) bin.latencies = {{.bucket = bucket, .count = 10}};
    bins.push_back(bin);
  }
  return bins;
}

std::vector<std::uint64_t> latencies(std::size_t before,
                                     std::size_t during,
                                     std::size_t after,
                                     std::uint64_t bad_ms) {
  std::vector<std::uint64_t> all(before, 10);
  all.insert(all.end(), during, bad_ms);
  all.insert(all.end(), after, 11);
  return all;
}

}  // namespace

TEST_CASE("faults: a failed call is lost to the fault in its life", "[load][faults]") {
  struct Row {
    const char* what;
    EndedCall call;
    std::optional<std::size_t> lost_to;
  };

  const Row row =
      GENERATE(Row{"before every fault", call(900, 950, kUnavailable), std::nullopt},
               Row{"in flight at the first", call(990, 1010, kUnavailable), 0U},
               Row{"due after the first", call(1100, 1110, kUnavailable), 0U},
               Row{"a long one, in flight at the first", call(900, 3500, kUnavailable), 0U},
               Row{"in flight at the second", call(2900, 3010, kUnavailable), 2U},
               Row{"after a mark, which is no fault", call(2100, 2110, kUnavailable), 0U},
               Row{"after the second", call(9000, 9100, kUnavailable), 2U},
               Row{"answered", call(1100, 1110), std::nullopt});
  CAPTURE(row.what);
  FaultAnalysis analysis(0);
  analysis.fault_began(1000 * kMs, true);
  analysis.fault_began(2000 * kMs, false);
  analysis.fault_began(3000 * kMs, true);
  analysis.ended(row.call, 0);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(analysis.figures()[i].lost == (row.lost_to == i ? 1 : 0));
}

TEST_CASE("faults: the next priority's first answer and the failback", "[load][faults]") {
  FaultAnalysis analysis(0);
  analysis.ended(call(900, 905), 0);
  analysis.fault_began(1000 * kMs, true);
  analysis.ended(call(995, 1002, kUnavailable), std::nullopt);
  analysis.ended(call(990, 1003), 0);  // Sent before the fault and answered after it.
  analysis.ended(call(1010, 1030), 1);
  analysis.ended(call(1011, 1031), 1);
  analysis.ended(call(1012, 1032), 0);  // Sent before the next priority answered.
  const LoadFaultFigures figures = analysis.figures()[0];
  CHECK(figures.lost == 1);
  CHECK(figures.first_success_ns == 30 * kMs);
  CHECK(figures.failback_errors == 0);
}

TEST_CASE("faults: errors around the return are failback errors", "[load][faults]") {
  FaultAnalysis analysis(0);
  analysis.ended(call(900, 905), 0);
  analysis.fault_began(1000 * kMs, true);
  analysis.ended(call(995, 1002, kUnavailable), std::nullopt);
  analysis.ended(call(1010, 1030), 1);
  analysis.fault_began(5000 * kMs, false);                       // The restart.
  analysis.ended(call(3000, 3010, kUnavailable), std::nullopt);  // Too early to count.
  analysis.ended(call(5100, 5110, kUnavailable), std::nullopt);  // Counts as a failback error.
  analysis.ended(call(5200, 5210), 0);                           // Priority 0 answers again.
  analysis.ended(call(5300, 5310, kUnavailable), std::nullopt);  // Counts as a failback error.
  analysis.ended(call(6300, 6310, kUnavailable), std::nullopt);  // Too late to count.
  CHECK(analysis.figures()[0].failback_errors == 2);
  CHECK(analysis.figures()[0].lost == 5);
  CHECK(analysis.figures()[1].failback_errors == 0);
}

TEST_CASE("faults: errors before the next priority's first answer are no failback errors",
          "[load][faults]") {
  FaultAnalysis analysis(0);
  analysis.ended(call(900, 905), 0);
  analysis.fault_began(1000 * kMs, true);
  analysis.ended(call(1001, 1002, kUnavailable), std::nullopt);
  analysis.ended(call(1010, 1030), 1);
  analysis.ended(call(1090, 1100, kUnavailable), std::nullopt);
  analysis.ended(call(1150, 1200), 0);  // The failback, within a second of both errors.
  CHECK(analysis.figures()[0].failback_errors == 1);
}

TEST_CASE("faults: a priority that answered more than a second before may be the next",
          "[load][faults]") {
  FaultAnalysis analysis(0);
  analysis.ended(call(100, 105), 1);
  analysis.ended(call(2900, 2905), 0);
  analysis.fault_began(3000 * kMs, true);
  analysis.ended(call(3010, 3030), 1);
  CHECK(analysis.figures()[0].first_success_ns == 30 * kMs);
}

TEST_CASE("faults: a second fault needs a worse priority than the second", "[load][faults]") {
  FaultAnalysis analysis(0);
  analysis.ended(call(900, 905), 0);
  analysis.fault_began(1000 * kMs, true);
  analysis.ended(call(1010, 1030), 1);
  analysis.ended(call(2995, 2999), 1);
  analysis.fault_began(3000 * kMs, true);
  analysis.ended(call(3001, 3002), 1);
  CHECK(analysis.figures()[1].first_success_ns == std::nullopt);
  analysis.ended(call(3005, 3040), 2);
  CHECK(analysis.figures()[1].first_success_ns == 40 * kMs);
}

TEST_CASE("faults: the next priority's first answer belongs to the last fault", "[load][faults]") {
  struct Row {
    std::int64_t second_ms;
    bool is_of_first;
  };

  const Row row = GENERATE(Row{1900, true}, Row{2000, false});
  CAPTURE(row.second_ms);
  FaultAnalysis analysis(0);
  analysis.ended(call(900, 905), 0);
  analysis.fault_began(1000 * kMs, true);
  analysis.ended(call(1800, 1805), 0);
  analysis.fault_began(row.second_ms * kMs, true);
  analysis.ended(call(2010, 2030), 1);
  CHECK(analysis.figures()[0].first_success_ns.has_value() == row.is_of_first);
  CHECK(analysis.figures()[1].first_success_ns == (2030 - row.second_ms) * kMs);
}

TEST_CASE("faults: a session that moves counts once for a fault", "[load][faults]") {
  FaultAnalysis analysis(2);
  analysis.ended(session_call(10, 0, 1), 0);
  analysis.ended(session_call(20, 1, 1), 0);
  analysis.ended(session_call(30, 1, 2), 0);  // A move before every fault counts for none.
  analysis.fault_began(1000 * kMs, true);
  analysis.ended(session_call(1100, 0, 2), 0);
  analysis.ended(session_call(1200, 0, 1), 0);
  analysis.ended(session_call(1300, 1, 2), 0);
  CHECK(analysis.figures()[0].sessions_moved == 1);
  analysis.fault_began(2000 * kMs, true);
  analysis.ended(session_call(2100, 0, 2), 0);
  analysis.ended(session_call(2100, 1, 1), 0);
  CHECK(analysis.figures()[0].sessions_moved == 1);
  CHECK(analysis.figures()[1].sessions_moved == 2);
}

TEST_CASE("faults: recovery is the first 5 s within the baseline", "[load][faults]") {
  struct Row {
    const char* what;
    std::vector<std::uint64_t> latency_ms;
    std::int64_t at_ms;
    std::optional<std::int64_t> recovery_ms;
  };

  const Row row =
      GENERATE(Row{"no harm", latencies(60, 0, 60, 0), 6000, 0},
               Row{"2 s of slow calls", latencies(60, 20, 60, 500), 6000, 2000},
               Row{"2 s of failed calls", latencies(60, 20, 60, 0), 6000, 2000},
               Row{"slow by less than 1.2", latencies(60, 20, 60, 12), 6000, 0},
               Row{"slow by a little more than 1.2", latencies(60, 20, 60, 13), 6000, 2000},
               Row{"the run ends too early", latencies(60, 20, 49, 500), 6000, std::nullopt},
               Row{"it never recovers", latencies(60, 60, 0, 500), 6000, std::nullopt},
               Row{"nothing was answered before", latencies(0, 20, 60, 500), 0, std::nullopt});
  CAPTURE(row.what);
  const auto bins = bins_of(row.latency_ms);
  const std::int64_t at = row.at_ms * kMs;
  const auto ran = static_cast<std::int64_t>(bins.size()) * kLoadBinNs;
  const auto recovery = recovery_of(bins, at, ran, baseline_of(bins, at));
  REQUIRE(recovery.has_value() == row.recovery_ms.has_value());
  if (recovery) CHECK(*recovery == *row.recovery_ms * kMs);
}

TEST_CASE("faults: the baseline is of the 5 s before the fault", "[load][faults]") {
  std::vector<std::uint64_t> latency_ms(10, 500);
  latency_ms.insert(latency_ms.end(), 50, 10);
  const auto bins = bins_of(latency_ms);
  CHECK(baseline_of(bins, 6000 * kMs) < 11 * kMs);
  CHECK(baseline_of(bins, 5900 * kMs) > 499 * kMs);
}

TEST_CASE("faults: a missing recovery says why it is missing", "[load][faults]") {
  struct Row {
    const char* what;
    std::vector<std::uint64_t> latency_ms;
    std::int64_t at_ms;
    std::int64_t ran_ms;
    Unrecovered why;
  };

  const Row row = GENERATE(
      Row{"slow to the end", latencies(60, 60, 0, 500), 6000, 12'000, Unrecovered::kNever},
      Row{"good for half a second at the end",
          latencies(60, 60, 5, 500),
          6000,
          12'500,
          Unrecovered::kNever},
      Row{"good for 4.9 s at the end",
          latencies(60, 20, 49, 500),
          6000,
          12'900,
          Unrecovered::kTooShort},
      Row{"slow, cut 3 s after", latencies(60, 60, 0, 500), 6000, 9000, Unrecovered::kTooShort},
      Row{"the bins end 3 s after",
          latencies(60, 30, 0, 500),
          6000,
          12'000,
          Unrecovered::kTooShort},
      Row{"cut at once", latencies(0, 0, 0, 0), 0, 0, Unrecovered::kNoBaseline},
      Row{"no call before", latencies(0, 20, 60, 500), 0, 8000, Unrecovered::kNoBaseline});
  CAPTURE(row.what);
  const auto bins = bins_of(row.latency_ms);
  const std::int64_t at = row.at_ms * kMs;
  const std::int64_t ran = row.ran_ms * kMs;
  const std::uint64_t baseline = baseline_of(bins, at);
  REQUIRE_FALSE(recovery_of(bins, at, ran, baseline));
  CHECK(why_unrecovered(bins, at, ran, baseline) == row.why);
}

TEST_CASE("faults: a baseline below a millisecond allows a millisecond more", "[load][faults]") {
  auto bins = bins_of(latencies(60, 0, 60, 0));
  for (LoadBin& bin : bins)
    bin.latencies = {
        {.bucket = static_cast<std::uint32_t>(LatencyHistogram::bucket_of(200'000)), .count = 10}};
  for (std::size_t i = 60; i < 80; ++i)
    bins[i].latencies[0].bucket =
        static_cast<std::uint32_t>(LatencyHistogram::bucket_of(1'100'000));
  CHECK(recovery_of(bins, 6000 * kMs, 12'000 * kMs, baseline_of(bins, 6000 * kMs)) == 0);
}

}  // namespace signalbox::tools::fault_analysis_test
