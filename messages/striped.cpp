// SPDX-License-Identifier: Apache-2.0
#include "messages/striped.hpp"

namespace signalbox {

std::size_t this_thread_stripe() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return mine;
}

}  // namespace signalbox
