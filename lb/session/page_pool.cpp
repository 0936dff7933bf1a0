// SPDX-License-Identifier: Apache-2.0
#include "lb/session/page_pool.hpp"

#include <algorithm>
#include <bit>

namespace signalbox::lb {
namespace {

// The size that is requested from libstdc++'s pool: the next power of two. The pool aligns pieces
// of such a size to the size. For other sizes it may align them less than requested.
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
