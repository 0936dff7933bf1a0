// SPDX-License-Identifier: Apache-2.0
//
// Record — what reached the control plane, tenth of a second by tenth of a second.
//
//   server ─▶ [Record] ─▶ Outcome (fleet.hpp)

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox::fleet {

/// The messages that arrived in some time.
struct Arrivals {
  std::uint64_t connections = 0;  ///< Attempts while the server is up.
  std::uint64_t requests = 0;     ///< Discovery requests: names, ACKs and NACKs.
  std::uint64_t refused = 0;      ///< Attempts while the server is away; they cost it nothing.

  std::uint64_t arrived() const { return connections + requests; }

  Arrivals& operator+=(const Arrivals& more) {
    connections += more.connections;
    requests += more.requests;
    refused += more.refused;
    return *this;
  }
};

inline constexpr Duration kTenth = std::chrono::milliseconds(100);
inline constexpr std::size_t kTenthsOfSecond = 10;

class Record {
 public:
  /// The tenth of a second with this instant; it exists from now on.
  Arrivals& at(Instant now) {
    const auto tenth = static_cast<std::size_t>(now.time_since_epoch() / kTenth);
    if (tenth >= tenths_.size()) tenths_.resize(tenth + 1);
    return tenths_[tenth];
  }

  void add_nack(std::size_t client) { ++nacks_[client]; }

  void add_wait(Duration wait) { longest_wait_ = std::max(longest_wait_, wait); }

  void reset_longest_wait() { longest_wait_ = Duration::zero(); }

  /// The server has worked for a connection that its client had given up.
  void add_wasted() { ++wasted_; }

  const std::vector<Arrivals>& tenths() const { return tenths_; }

  /// The number of NACKs by client; clients without a NACK have none.
  const std::map<std::size_t, std::uint64_t>& nacks() const { return nacks_; }

  /// The longest time that a message waited for the server.
  Duration longest_wait() const { return longest_wait_; }

  std::uint64_t wasted() const { return wasted_; }

 private:
  std::vector<Arrivals> tenths_;
  std::map<std::size_t, std::uint64_t> nacks_;
  Duration longest_wait_{};
  std::uint64_t wasted_ = 0;
};

}  // namespace signalbox::fleet
