// SPDX-License-Identifier: Apache-2.0
//
// CountedMemory — counts a program's allocations in its operator new.
//
//   CountedMemory counted; work(); counted.most(), counted.allocations()
//
// At most one source of a program may include this header, because it defines the operators.
// Allocations of all threads count, but over-aligned ones do not. The counts do not depend on the
// machine's speed, so tests can bound them.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace signalbox::testing {

inline std::atomic<std::size_t> counted_live{0};
inline std::atomic<std::size_t> counted_most{0};
inline std::atomic<std::size_t> counted_allocations{0};

/// Counts since the instance was made. Only one instance may exist at a time.
class CountedMemory {
 public:
  CountedMemory() : live_before_(counted_live), allocations_before_(counted_allocations) {
    counted_most = live_before_;
  }

  /// The most bytes that were in use at one moment since the instance was made. Bytes in use before
  /// that do not count.
  std::size_t most() const { return counted_most - live_before_; }

  /// The bytes now in use, of those allocated since the instance was made. Precondition: memory
  /// allocated before that is not freed meanwhile.
  std::size_t live() const { return counted_live - live_before_; }

  std::size_t allocations() const { return counted_allocations - allocations_before_; }

 private:
  std::size_t live_before_;
  std::size_t allocations_before_;
};

inline void* count_new_or_null(std::size_t size) noexcept {
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) return nullptr;
  const std::size_t live = counted_live += ::malloc_usable_size(memory);
  if (live > counted_most) counted_most = live;
  ++counted_allocations;
  return memory;
}

inline void* count_new(std::size_t size) {
  void* const memory = count_new_or_null(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

inline void count_delete(void* memory) noexcept {
  if (memory == nullptr) return;
  counted_live -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace signalbox::testing

// NOLINTBEGIN(misc-definitions-in-headers): only one source includes this header.
void* operator new(std::size_t size) {
  return signalbox::testing::count_new(size);
}

void* operator new[](std::size_t size) {
  return signalbox::testing::count_new(size);
}

// AddressSanitizer replaces the nothrow operators too, and its versions do not call the operators
// above. So the nothrow operators are defined here.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return signalbox::testing::count_new_or_null(size);
}

void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return signalbox::testing::count_new_or_null(size);
}

void operator delete(void* memory) noexcept {
  signalbox::testing::count_delete(memory);
}

void operator delete[](void* memory) noexcept {
  signalbox::testing::count_delete(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
  signalbox::testing::count_delete(memory);
}

void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  signalbox::testing::count_delete(memory);
}

// NOLINTEND(misc-definitions-in-headers)
