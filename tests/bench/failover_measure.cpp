// SPDX-License-Identifier: Apache-2.0
//
// Measures a failover as a client sees it under an open load: a cluster's backends are killed and
// started again.
//
//   driver: start ── ready ─▶ SIGKILL to primary ── … ── starts it again ── … ── reads the result
//   client: load ─ every primary backend seen ─ first answer of secondary ─ first of primary again
//
// Every second call keeps its backend busy, so that calls are in flight when the backend dies. The
// other calls are answered at once, so that the time to the first answer does not include work.
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/measures.hpp"
#include "tests/bench/rate_load.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWork = std::chrono::microseconds(5000);
constexpr auto kNoWork = std::chrono::microseconds(0);
constexpr auto kFailoverPatience = std::chrono::seconds(30);
constexpr auto kFailoverSettleTime = std::chrono::milliseconds(300);

class Witness {
 public:
  explicit Witness(const std::vector<std::string>& primaries)
      : primaries_(primaries.begin(), primaries.end()) {}

  void see(const tools::NamedCall& call) {
    const std::lock_guard lock(mutex_);
    if (!call.ok) {
      failures_ns_.push_back(call.ended.time_since_epoch().count());
    } else if (!primaries_.contains(call.address)) {
      if (first_secondary_ns_ == 0) first_secondary_ns_ = call.ended.time_since_epoch().count();
    } else if (first_secondary_ns_ == 0) {
      seen_.insert(call.address);
    } else if (first_primary_again_ns_ == 0) {
      first_primary_again_ns_ = call.ended.time_since_epoch().count();
    }
    changed_.notify_all();
  }

  bool wait_for_all_primaries() {
    return wait([this] { return seen_ == primaries_; });
  }

  bool wait_for_failback() {
    return wait([this] { return first_primary_again_ns_ != 0; });
  }

  nlohmann::json result() const {
    const std::lock_guard lock(mutex_);
    return {{"first_secondary_ns", first_secondary_ns_},
            {"first_primary_again_ns", first_primary_again_ns_},
            {"failures_ns", failures_ns_}};
  }

 private:
  template <class Predicate>
  bool wait(Predicate holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kFailoverPatience, holds);
  }

  const std::set<std::string> primaries_;  // The addresses of the first cluster.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> seen_;           // Those of them that answered before any secondary did.
  std::int64_t first_secondary_ns_ = 0;  // 0: not yet.
  std::int64_t first_primary_again_ns_ = 0;
  std::vector<std::int64_t> failures_ns_;
};

}  // namespace

Measured measure_failover(const MeasureOptions& options, Side& side) {
  Witness witness(options.addresses);
  if (auto status = warm_up(*side.stub, 0, 0); !status.ok()) return status;
  {
    const auto load = start_load(side,
                                 {.rate = options.rate, .work = {kWork, kNoWork}},
                                 [&witness](const tools::NamedCall& call) { witness.see(call); });
    if (!witness.wait_for_all_primaries()) {
      return absl::DeadlineExceededError("not every primary backend has answered");
    }
    std::this_thread::sleep_for(kFailoverSettleTime);
    std::cout << R"({"ready":true})" << "\n" << std::flush;
    if (!witness.wait_for_failback()) {
      return absl::DeadlineExceededError("no failover and failback: " + witness.result().dump());
    }
    std::this_thread::sleep_for(kFailoverSettleTime);
  }
  return witness.result();
}

}  // namespace signalbox::bench
