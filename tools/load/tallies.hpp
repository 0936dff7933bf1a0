// SPDX-License-Identifier: Apache-2.0
//
// EndpointNumbers, MessageCounts — a generator of load numbers the endpoints of its calls, and
// counts their error messages. most_frequent — the messages that a report has.
//
//   a call's peer ─▶ [EndpointNumbers] ─▶ EndedCall::endpoint
//   a call's error ─▶ [MessageCounts] ─▶ EndedCall::message, LoadRecorder::finish()
//
// Not thread-safe.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "tools/load/ended_call.hpp"
#include "tools/load/peer.hpp"

namespace signalbox::tools {

/// Numbers the addresses of endpoints from 1, in the order in which calls reach them.
class EndpointNumbers {
 public:
  struct Found {
    std::uint32_t number = EndedCall::kNoEndpoint;
    std::optional<std::string> new_address;  ///< Set for the first call to an address.
  };

  /// `peer`: gRPC's name. Two names of one address have one number. kNoEndpoint: the peer is no
  /// endpoint.
  Found find(const std::string& peer) {
    const auto [known, is_new_peer] = by_peer_.try_emplace(peer, EndedCall::kNoEndpoint);
    if (!is_new_peer) return {known->second, std::nullopt};
    std::string address = address_of_peer(peer);
    if (address.empty()) return {};
    const auto next = static_cast<std::uint32_t>(by_address_.size() + 1);
    const auto [found, is_new] = by_address_.try_emplace(address, next);
    known->second = found->second;
    if (!is_new) return {found->second, std::nullopt};
    return {found->second, std::move(address)};
  }

 private:
  std::unordered_map<std::string, std::uint32_t> by_peer_;  // Parses a peer only once.
  std::unordered_map<std::string, std::uint32_t> by_address_;
};

/// Counts error messages, and numbers them from 1. Messages beyond the first kMost different ones
/// are not counted.
class MessageCounts {
 public:
  static constexpr std::size_t kMost = 1000;

  struct Added {
    std::uint32_t number = EndedCall::kNoMessage;
    bool is_new = false;  ///< The message was added for the first time.
  };

  /// Allocates only for a new message.
  Added add(absl::string_view message) {
    if (const auto known = numbers_.find(message); known != numbers_.end()) {
      ++counts_[known->second - 1];
      return {known->second, false};
    }
    if (counts_.size() == kMost) return {};
    counts_.push_back(1);
    const auto number = static_cast<std::uint32_t>(counts_.size());
    numbers_.emplace(message, number);
    return {number, true};
  }

  std::map<std::string, std::uint64_t> counts() const {
    std::map<std::string, std::uint64_t> counts;
    for (const auto& [message, number] : numbers_)
      counts.emplace(message, counts_[number - 1]);
    return counts;
  }

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::uint64_t> counts_;  // The message with number 1 has the first count.
};

/// The 20 messages with the highest counts: those that a report has.
inline std::map<std::string, std::uint64_t> most_frequent(
    const std::map<std::string, std::uint64_t>& messages) {
  constexpr std::size_t kMost = 20;
  std::vector<std::pair<std::string, std::uint64_t>> rows(messages.begin(), messages.end());
  std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.second; });
  rows.resize(std::min(rows.size(), kMost));
  return {rows.begin(), rows.end()};
}

}  // namespace signalbox::tools
