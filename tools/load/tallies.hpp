// SPDX-License-Identifier: Apache-2.0
//
// EndpointNumbers, MessageCounts — a generator of load numbers the endpoints of its calls, and
// counts their error messages.
//
//   a call's peer ─▶ [EndpointNumbers] ─▶ EndedCall::endpoint
//   a call's error ─▶ [MessageCounts] ─▶ LoadRecorder::finish()
//
// Not thread-safe. The load engine and the demo's record each have their own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "tools/load/ended_call.hpp"
#include "tools/peer.hpp"

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

/// Counts error messages. Messages beyond the first kMost different ones are not counted.
class MessageCounts {
 public:
  static constexpr std::size_t kMost = 1000;

  void add(std::string message) {
    if (const auto known = counts_.find(message); known != counts_.end()) {
      ++known->second;
    } else if (counts_.size() < kMost) {
      counts_.emplace(std::move(message), 1);
    }
  }

  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace signalbox::tools
