// SPDX-License-Identifier: Apache-2.0
//
// Ring — small values from one thread to one other, without a lock and without an allocation.
//
//   writer: push() ─▶ [Ring] ─▶ reader: pop()

#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <optional>

namespace signalbox::tools {

template <class T, std::size_t kPlaces>
class Ring {
  static_assert(std::has_single_bit(kPlaces));

 public:
  /// False: the ring is full.
  bool push(const T& value) {
    const std::size_t next = written_.load(std::memory_order_relaxed);
    if (next - read_.load(std::memory_order_acquire) == kPlaces) return false;
    places_[next % kPlaces] = value;
    written_.store(next + 1, std::memory_order_release);
    return true;
  }

  /// nullopt: the ring is empty.
  std::optional<T> pop() {
    const std::size_t next = read_.load(std::memory_order_relaxed);
    if (next == written_.load(std::memory_order_acquire)) return std::nullopt;
    const T value = places_[next % kPlaces];
    read_.store(next + 1, std::memory_order_release);
    return value;
  }

 private:
  // Each side's counter has a cache line of its own.
  alignas(64) std::atomic<std::size_t> written_ = 0;
  alignas(64) std::atomic<std::size_t> read_ = 0;
  alignas(64) std::array<T, kPlaces> places_{};
};

}  // namespace signalbox::tools
