// SPDX-License-Identifier: Apache-2.0
//
// Measures an overload: more calls than the backends can serve, with a circuit breaker in the
// client. Results: how many calls are served, and how soon the other calls are refused.
//
//   open load ─▶ breaker ─┬▶ backend: a fixed number at a time, each for `work_ms`
//                         └▶ refused at once
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/bench/measures.hpp"
#include "tests/bench/rate_load.hpp"
#include "tools/load/histogram.hpp"

namespace signalbox::bench {
namespace {

constexpr auto kOverloadSettleTime = std::chrono::milliseconds(500);

struct OverloadSeen {
  double served = 0;
  tools::LatencyHistogram refused;
  std::string other;  ///< The error of a call that failed for another reason.
};

// Whether a circuit breaker refused the call. Both sides name it in the error text: "circuit
// breaker: … in flight" (signalbox), "circuit breaker drop" (gRPC).
bool is_refused(const tools::NamedCall& call) {
  return absl::StrContains(call.message, "circuit breaker");
}

}  // namespace

Measured measure_overload(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok())
    return status;
  const auto work = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::duration<double, std::milli>(options.work_ms));
  Window window;
  OverloadSeen seen;  // Only the load's thread uses it until the load has ended.
  auto load =
      start_load(side, {.rate = options.rate, .work = {work}}, [&](const tools::NamedCall& call) {
        if (!call.ok && !is_refused(call)) seen.other = call.message;
        if (!window.has(call.ended)) return;
        if (call.ok) {
          ++seen.served;
        } else {
          seen.refused.record(static_cast<std::uint64_t>((call.ended - call.due).count()));
        }
      });
  std::this_thread::sleep_for(kOverloadSettleTime);
  window.open();
  std::this_thread::sleep_for(options.length);
  window.close();
  load.reset();
  if (!seen.other.empty())
    return absl::UnavailableError(absl::StrCat("a call failed otherwise: ", seen.other));
  return nlohmann::json{
      {"served_per_second", seen.served / window.seconds()},
      {"refused_per_second", static_cast<double>(seen.refused.count()) / window.seconds()},
      {"refused_p99_ms", static_cast<double>(seen.refused.percentile(99)) / 1e6}};
}

}  // namespace signalbox::bench
