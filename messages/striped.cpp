// SPDX-License-Identifier: Apache-2.0
#include "messages/striped.hpp"

namespace signalbox {

std::size_t take_stripe() {
  static std::atomic<std::size_t> next{0};
  const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  stripe_taken = mine + 1;
  return mine;
}

}  // namespace signalbox
