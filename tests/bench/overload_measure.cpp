// SPDX-License-Identifier: Apache-2.0
//
// Measures an overload: more calls than the backends can serve, with a circuit breaker in the
// client. Results: how many calls are served, and how soon the other calls are refused.
//
//   open load ─▶ breaker ─┬▶ backend: a fixed number at a time, each for `work_ms`
//                         └▶ refused at once
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/bench/measures.hpp"
#include "tests/bench/open_loop.hpp"
#include "tests/bench/percentiles.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSettleTime = std::chrono::milliseconds(500);

struct Seen {
  double served = 0;
  std::vector<std::int64_t> refused_ns;
  std::string other;  ///< The error of a call that failed for another reason.
};

// Whether a circuit breaker refused the call. Both sides name it in the error text: "circuit
// breaker: … in flight" (signalbox), "circuit breaker drop" (gRPC).
bool is_refused(const AnsweredCall& call) {
  return absl::StrContains(call.error, "circuit breaker");
}

}  // namespace

Measured measure_overload(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok())
    return status;
  const auto work = std::chrono::duration<double, std::milli>(options.work_ms);
  std::mutex mutex;
  bool is_measuring = false;
  Seen seen;
  double seconds = 0;
  {
    const OpenLoop load(*side.stub,
                        {.rate = options.rate,
                         .work = std::chrono::duration_cast<std::chrono::microseconds>(work),
                         .work_every = 1},
                        [&](const AnsweredCall& call) {
                          const std::lock_guard lock(mutex);
                          if (!call.ok && !is_refused(call)) seen.other = call.error;
                          if (!is_measuring) return;
                          if (call.ok) {
                            ++seen.served;
                          } else {
                            seen.refused_ns.push_back((call.ended - call.due).count());
                          }
                        });
    const auto set_measuring = [&](bool now) {
      const std::lock_guard lock(mutex);
      is_measuring = now;
    };
    std::this_thread::sleep_for(kSettleTime);
    const auto begun = Clock::now();
    set_measuring(true);
    std::this_thread::sleep_for(options.length);
    set_measuring(false);
    seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  }
  if (!seen.other.empty())
    return absl::UnavailableError(absl::StrCat("a call failed otherwise: ", seen.other));
  const auto refused = static_cast<double>(seen.refused_ns.size());
  return nlohmann::json{{"served_per_second", seen.served / seconds},
                        {"refused_per_second", refused / seconds},
                        {"refused_p99_ms", percentile(seen.refused_ns, 99) / 1e6}};
}

}  // namespace signalbox::bench
