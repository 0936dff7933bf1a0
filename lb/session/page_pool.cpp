// SPDX-License-Identifier: Apache-2.0
#include "lb/session/page_pool.hpp"

#include <algorithm>
#include <bit>

namespace signalbox::lb {
namespace {

// A power of two. For other sizes libstdc++'s pool returns pieces with less alignment than asked
// for; for powers of two it returns pieces that are aligned to their size.
std::size_t pooled(std::size_t bytes, std::size_t alignment) {
  return std::bit_ceil(std::max(bytes, alignment));
}

}  // namespace

void* PagePool::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > kLargestPooled) return pages_.allocate(bytes, alignment);
  const std::scoped_lock lock(mutex_);
  return pool_.allocate(pooled(bytes, alignment));
}

void PagePool::do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) {
  if (bytes > kLargestPooled) return pages_.deallocate(memory, bytes, alignment);
  const std::scoped_lock lock(mutex_);
  pool_.deallocate(memory, pooled(bytes, alignment));
}

}  // namespace signalbox::lb
