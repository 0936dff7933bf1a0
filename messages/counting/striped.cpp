// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/striped.hpp"

#include <bit>

namespace signalbox {
namespace {

// One bit for each stripe that a thread can own. A set bit: the stripe has no owner.
constinit std::atomic<std::uint32_t> free_stripes{(1U << kOwnStripes) - 1};

std::size_t shared_stripe() {
  static std::atomic<std::size_t> next{0};
  return kOwnStripes + next.fetch_add(1, std::memory_order_relaxed) % (kStripes - kOwnStripes);
}

// Gives the thread's own stripe back when the thread ends. Destructors of other thread-local
// objects may run after ~Lease and still count. So ~Lease first gives the thread a shared stripe.
struct Lease {
  explicit Lease(std::size_t stripe) : mine(stripe) {}

  ~Lease() {
    stripe_taken = shared_stripe() + 1;
    free_stripes.fetch_or(1U << mine, std::memory_order_release);
  }

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::size_t mine;
};

}  // namespace

// A thread adds to the counts that the stripe's last owner left, so it must see them. For that,
// this function acquires and ~Lease releases.
std::size_t take_stripe() {
  std::uint32_t free = free_stripes.load(std::memory_order_relaxed);
  while (free != 0) {
    if (!free_stripes.compare_exchange_weak(
            free, free & (free - 1), std::memory_order_acquire, std::memory_order_relaxed)) {
      continue;
    }
    const thread_local Lease lease(static_cast<std::size_t>(std::countr_zero(free)));
    stripe_taken = lease.mine + 1;
    return lease.mine;
  }
  const std::size_t shared = shared_stripe();
  stripe_taken = shared + 1;
  return shared;
}

}  // namespace signalbox
