// SPDX-License-Identifier: Apache-2.0
//
// Times gRPC's own route and pick inside real calls. This is a library for LD_PRELOAD, for gRPC
// 1.51.
//
//   generated stub ─▶ gRPC's client channel ─▶ [shim] ─▶ CheckResolutionLocked (route)
//                                          └─▶ [shim] ─▶ PickSubchannelLocked  (pick)
//
// C-core calls both functions through its symbol table, so a library that is loaded first can
// replace them and call the originals. A sample is the sum of a call's route and its pick, one
// right after the other on one thread. A call that had to wait for a connection gives no sample.
// C-core locks its channel's mutexes outside of these functions, so samples do not include that
// locking.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/options.h"
#include <dlfcn.h>

#include "tests/bench/peer_pick_samples.hpp"
#include "tests/bench/ticks.hpp"

// Debian's abseil spells absl::Status as absl::debian3::Status, on Debian 13 debian7. The mangled
// name has the length of the middle part, 7.
#define PEER_TEXT_OF(name) #name
#define PEER_TEXT(name) PEER_TEXT_OF(name)
#define PEER_STATUS "N4absl7" PEER_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME) "6StatusE"
#define PEER_ROUTE \
  "_ZN9grpc_core13ClientChannel8CallData21CheckResolutionLockedEP17grpc_call_elementP" PEER_STATUS
#define PEER_PICK \
  "_ZN9grpc_core13ClientChannel16LoadBalancedCall20PickSubchannelLockedEP" PEER_STATUS
static_assert(sizeof(PEER_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME)) == sizeof("debian3"));

namespace signalbox::bench {
namespace {

constexpr std::size_t kMostSamples = 2'000'000;  // The most samples of one thread.

// Written by one thread. Other threads read the samples only while no call is under way.
struct Samples {
  std::unique_ptr<std::uint32_t[]> ticks = std::make_unique<std::uint32_t[]>(kMostSamples);
  std::atomic<std::size_t> count = 0;
};

struct AllSamples {
  std::mutex mutex;
  std::vector<std::unique_ptr<Samples>> of_threads;  // Kept after a thread has ended.
};

AllSamples& all_samples() {
  static auto* const all = new AllSamples;  // gRPC's threads may outlive static objects.
  return *all;
}

Samples& samples_of_this_thread() {
  thread_local Samples* samples = nullptr;
  if (samples == nullptr) {
    AllSamples& all = all_samples();
    const std::lock_guard lock(all.mutex);
    samples = all.of_threads.emplace_back(std::make_unique<Samples>()).get();
  }
  return *samples;
}

template <class Function>
Function* real(const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "peer_pick_shim: this is not Debian's gRPC 1.51: it has no %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// The ticks that this thread's last choice of a route took, until the pick of the same call is
// timed. 0: the call has no route yet, or its pick has been timed.
thread_local std::uint64_t route_ticks = 0;

void record(std::uint64_t ticks) {
  Samples& samples = samples_of_this_thread();
  const std::size_t count = samples.count.load(std::memory_order_relaxed);
  if (count == kMostSamples) return;
  samples.ticks[count] = static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks, UINT32_MAX));
  samples.count.store(count + 1, std::memory_order_release);
}

using Route = bool(void* call, void* element, void* error);
using PickFunction = bool(void* call, void* error);

}  // namespace
}  // namespace signalbox::bench

extern "C" {

// Replaces CheckResolutionLocked, and times it. Returns true when the call has a route or has
// failed.
bool timed_route(void* call, void* element, void* error) asm(PEER_ROUTE);
// Replaces PickSubchannelLocked, and times it. Returns true when the call has a subchannel or has
// failed.
bool timed_pick(void* call, void* error) asm(PEER_PICK);

bool timed_route(void* call, void* element, void* error) {
  using namespace signalbox::bench;  // NOLINT(google-build-using-namespace)
  static Route* const route = real<Route>(PEER_ROUTE);
  const std::uint64_t begin = ticks_now();
  const bool done = route(call, element, error);
  const std::uint64_t end = ticks_now();
  route_ticks = done ? end - begin : 0;
  return done;
}

bool timed_pick(void* call, void* error) {
  using namespace signalbox::bench;  // NOLINT(google-build-using-namespace)
  static PickFunction* const pick = real<PickFunction>(PEER_PICK);
  const std::uint64_t begin = ticks_now();
  const bool done = pick(call, error);
  const std::uint64_t end = ticks_now();
  if (done && route_ticks != 0) record(route_ticks + (end - begin));
  route_ticks = 0;
  return done;
}

void signalbox_peer_picks_reset() {
  auto& all = signalbox::bench::all_samples();
  const std::lock_guard lock(all.mutex);
  for (auto& samples : all.of_threads)
    samples->count.store(0, std::memory_order_relaxed);
}

std::size_t signalbox_peer_picks_copy(std::uint32_t* samples, std::size_t room) {
  auto& all = signalbox::bench::all_samples();
  const std::lock_guard lock(all.mutex);
  std::size_t copied = 0;
  for (const auto& of_thread : all.of_threads) {
    const std::size_t count =
        std::min(of_thread->count.load(std::memory_order_acquire), room - copied);
    std::copy_n(of_thread->ticks.get(), count, samples + copied);
    copied += count;
  }
  return copied;
}

}  // extern "C"
