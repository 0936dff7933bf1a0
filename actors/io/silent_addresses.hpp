// SPDX-License-Identifier: Apache-2.0
//
// SilentAddresses — the addresses of servers that wait for the client's preface.
//
//   socket_dialer: is_silent() ─▶ add(address) ─▶ [SilentAddresses] ─▶ has(address): gRPC connects
//
// An address is remembered for kSilentFor. At most kMostSilent addresses are remembered: further
// ones are dialed each time. All functions take amortised O(log n), because thousands of servers
// may be silent at once.
//
// No I/O, no clock. Moved, never copied: a copy would refer to the source's addresses.

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "messages/ids.hpp"

namespace signalbox::actors {

class SilentAddresses {
 public:
  SilentAddresses() = default;
  ~SilentAddresses() = default;
  SilentAddresses(SilentAddresses&&) = default;
  SilentAddresses& operator=(SilentAddresses&&) = default;
  SilentAddresses(const SilentAddresses&) = delete;
  SilentAddresses& operator=(const SilentAddresses&) = delete;

  static constexpr std::chrono::minutes kSilentFor{10};
  static constexpr std::size_t kMostSilent = 10'000;

  /// An address that is remembered already keeps its time. `now` never decreases.
  void add(const Address& address, Instant now) {
    while (!by_age_.empty() && by_age_.front()->second <= now) {
      until_.erase(by_age_.front());
      by_age_.pop_front();
    }
    if (until_.size() >= kMostSilent) return;
    const auto [place, is_new] = until_.emplace(address, now + kSilentFor);
    if (is_new) by_age_.push_back(place);
  }

  bool has(const Address& address, Instant now) const {
    const auto found = until_.find(address);
    return found != until_.end() && found->second > now;
  }

 private:
  using Until = std::map<Address, Instant>;

  Until until_;
  std::deque<Until::iterator> by_age_;  ///< All of until_, the oldest first.
};

}  // namespace signalbox::actors
