// SPDX-License-Identifier: Apache-2.0
//
// Measures the latency of calls at a rate, when some backends are slower than others.
//
//   open load ─▶ policy ─┬▶ backends with a line each ─▶ latency of each call, its wait included
//                        └▶ two of them at half speed
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

#include "tests/bench/measures.hpp"
#include "tests/bench/rate_load.hpp"
#include "tools/load/histogram.hpp"

namespace signalbox::bench {
namespace {

// The time that a policy has to adapt to the load before calls are measured.
constexpr auto kSettleTime = std::chrono::seconds(3);

struct Seen {
  tools::LatencyHistogram latency;
  std::set<std::string> backends;  ///< The addresses that answered, before the window, too.
  std::string failure;             ///< The error of a failed call.
};

}  // namespace

Measured measure_tail(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, 0, 0); !status.ok()) return status;
  Window window;
  Seen seen;  // Only the load's thread uses it until the load has ended.
  auto load =
      start_load(side,
                 {.rate = options.rate, .arrivals = tools::Arrivals::kPoisson},
                 [&](const tools::NamedCall& call) {
                   if (!call.ok) seen.failure = call.message;
                   if (call.ok) seen.backends.insert(call.address);
                   // The calls that were due in the window, also those that wait longer.
                   if (!window.has(call.due)) return;
                   seen.latency.record(static_cast<std::uint64_t>((call.ended - call.due).count()));
                 });
  if (options.weights) {
    if (auto status = wait_for_weights(side); !status.ok()) return status;
  }
  std::this_thread::sleep_for(kSettleTime);
  window.open();
  std::this_thread::sleep_for(options.length);
  window.close();
  load.reset();
  if (!seen.failure.empty())
    return absl::UnavailableError(absl::StrCat("a call failed: ", seen.failure));
  if (seen.latency.count() == 0) return absl::UnavailableError("no call was answered");
  return nlohmann::json{{"p50_ms", static_cast<double>(seen.latency.percentile(50)) / 1e6},
                        {"p99_ms", static_cast<double>(seen.latency.percentile(99)) / 1e6},
                        {"calls", seen.latency.count()},
                        {"backends", seen.backends.size()}};
}

}  // namespace signalbox::bench
