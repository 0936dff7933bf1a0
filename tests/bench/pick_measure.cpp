// SPDX-License-Identifier: Apache-2.0
//
// Times the choice of route and endpoint between real calls. The calls' other work leaves the
// caches as cold as they are in a server. On signalbox's side this is the public Router::pick,
// right before a call that could have used the result; the lb::Pick is held until that call ends.
// On gRPC's side, peer_pick_shim times gRPC's own functions.
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <dlfcn.h>

#include "tests/bench/closed_loop.hpp"
#include "tests/bench/measures.hpp"
#include "tests/bench/peer_pick_samples.hpp"
#include "tests/bench/percentiles.hpp"
#include "tests/bench/ticks.hpp"

namespace signalbox::bench {
namespace {

constexpr std::size_t kMostSamples = 4'000'000;

using Samples = std::vector<std::uint32_t>;

// The metadata of a call: at most a session's cookie.
class Metadata final : public HeaderSource {
 public:
  const std::string& cookie() const { return cookie_; }

  void set_cookie(std::string cookie) { cookie_ = std::move(cookie); }

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override {
    if (name == "cookie" && !cookie_.empty()) visit(cookie_);
  }

 private:
  std::string cookie_;
};

// The state of one thread. It has cache lines of its own, so that threads do not slow each other.
struct alignas(64) PickingThread {
  std::mt19937_64 dice;
  std::string path;
  Metadata metadata;
  Samples ticks;
  bool has_failed = false;
};

// Picks without a cookie until each endpoint has a session, at most 100 times for each endpoint.
// Returns the sessions' cookies; none without options.sessions.
absl::StatusOr<std::vector<std::string>> begin_sessions(const MeasureOptions& options,
                                                        const Router& router) {
  std::set<std::string> cookies;
  if (!options.sessions) return std::vector<std::string>();
  const int picks = 100 * options.endpoints;
  for (int i = 0; i < picks && std::cmp_less(cookies.size(), options.endpoints); ++i) {
    const Pick pick = router.pick({.path = kMethodPath, .seed = static_cast<std::uint64_t>(i)});
    if (pick.set_cookie().empty()) return absl::UnavailableError("a pick began no session");
    cookies.insert(pick.set_cookie());
  }
  return std::vector<std::string>(cookies.begin(), cookies.end());
}

absl::StatusOr<Samples> time_our_picks(const MeasureOptions& options, Side& side) {
  std::vector<PickingThread> threads(options.threads);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i].dice.seed(i);
    threads[i].ticks.reserve(kMostSamples / threads.size());
  }
  const Router& router = *side.router;
  const std::vector<std::string> paths = paths_of(options.routes);
  const auto cookies = begin_sessions(options, router);
  if (!cookies.ok()) return cookies.status();
  const auto run = run_closed_loop(options.threads, options.length, [&](std::size_t i) {
    PickingThread& thread = threads[i];
    // The copy brings the path into the cache, as a call's path is.
    thread.path = paths[thread.dice() % paths.size()];
    if (options.sessions) thread.metadata.set_cookie((*cookies)[thread.dice() % cookies->size()]);
    const CallArgs call{.path = thread.path,
                        .headers = options.sessions ? &thread.metadata : nullptr,
                        .seed = thread.dice()};
    const std::uint64_t begin = ticks_now();
    const Pick pick = router.pick(call);
    const std::uint64_t end = ticks_now();
    thread.ticks.push_back(static_cast<std::uint32_t>(end - begin));
    thread.has_failed |= pick.outcome() != PickOutcome::kComplete || !pick.set_cookie().empty();
    return place(*side.stub, thread.metadata.cookie());
  });
  if (!run.ok()) return run.status();

  Samples all;
  for (const PickingThread& thread : threads) {
    if (thread.has_failed) {
      return absl::UnavailableError("a pick was not complete, or its session has moved");
    }
    all.insert(all.end(), thread.ticks.begin(), thread.ticks.end());
  }
  return all;
}

absl::StatusOr<Samples> time_peers_picks(const MeasureOptions& options, Side& side) {
  auto* const reset = reinterpret_cast<PeerPicksReset*>(dlsym(RTLD_DEFAULT, kPeerPicksReset));
  auto* const copy = reinterpret_cast<PeerPicksCopy*>(dlsym(RTLD_DEFAULT, kPeerPicksCopy));
  if (reset == nullptr || copy == nullptr) {
    return absl::FailedPreconditionError("peer_pick_shim is not preloaded");
  }
  reset();
  const auto run = run_closed_loop(
      options.threads, options.length, [&side](std::size_t) { return place(*side.stub); });
  if (!run.ok()) return run.status();
  Samples all(kMostSamples);
  all.resize(copy(all.data(), all.size()));
  return all;
}

}  // namespace

Measured measure_pick(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok()) {
    return status;
  }
  if (options.weights) {
    if (auto status = wait_for_weights(side); !status.ok()) return status;
  }
  const bool is_ours = side.router != nullptr;
  auto samples = is_ours ? time_our_picks(options, side) : time_peers_picks(options, side);
  if (!samples.ok()) return samples.status();
  if (samples->empty()) return absl::InternalError("nothing was timed");

  const double overhead = ticks_overhead() * (is_ours ? 1 : kPeerTimings);
  const double rate = ticks_per_nanosecond();
  const auto nanoseconds = [&](double percent) {
    return (percentile(*samples, percent) - overhead) / rate;
  };
  return nlohmann::json{
      {"p50_ns", nanoseconds(50)}, {"p99_ns", nanoseconds(99)}, {"picks", samples->size()}};
}

}  // namespace signalbox::bench
