// SPDX-License-Identifier: Apache-2.0
//
// EndMark — whether a connection has ended. Picks know it before the policies do.
//
//   socket_dialer, tcp_connector ─▶ set() ─▶ [EndMark] ─▶ is_set(): the connection takes no calls
//             last owner goes ─▶ let_go() ─────▶ │
//                                                └▶ is_any_set() ─▶ Router::pick looks
//
// A look at the connection would cost every pick a cache line. So a pick looks only while a
// connection that pickers still have is marked. The number of such connections is one number for
// the process. It changes only when connections end, so picks read it from their own caches.
//
// Thread-safe.

#pragma once

#include <atomic>
#include <cstdint>

#include "messages/counting/striped.hpp"

namespace signalbox::actors {

class EndMark {
 public:
  EndMark() = default;

  /// Calls let_go().
  ~EndMark() { let_go(); }

  EndMark(const EndMark&) = delete;
  EndMark& operator=(const EndMark&) = delete;

  [[gnu::hot]] bool is_set() const { return (state_.load(std::memory_order_acquire) & kSet) != 0; }

  /// A thread that sees is_set() also sees is_any_set(), so the number rises first.
  void set() {
    marked().fetch_add(1, std::memory_order_relaxed);
    if (state_.fetch_or(kSet, std::memory_order_release) != 0) marked().fetch_sub(1);
  }

  /// The connection's last owner has gone, so no pick finds the connection.
  void let_go() {
    if (state_.fetch_or(kGone, std::memory_order_relaxed) == kSet) marked().fetch_sub(1);
  }

  /// Whether a connection that pickers have may be marked.
  [[gnu::hot]] static bool is_any_set() { return marked().load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr std::uint8_t kSet = 1;
  static constexpr std::uint8_t kGone = 2;

  static std::atomic<std::int64_t>& marked() {
    struct alignas(kCacheLine) Line {
      std::atomic<std::int64_t> value{0};
    };

    static constinit Line line;
    return line.value;
  }

  std::atomic<std::uint8_t> state_{0};
};

}  // namespace signalbox::actors
