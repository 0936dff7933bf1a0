// SPDX-License-Identifier: Apache-2.0
//
// Post — the mailboxes of a world: the letters that were sent and not yet delivered.
//
//   effect of a core ─▶ send() ─▶ one queue for each pair of sender and receiver
//                                   └─▶ pairs(), take() ─▶ event of a core
//                             └─▶ take_at_once(): letters inside a group, first in first out
//
// Letters of one pair keep their order, as CAF promises. All other orders are possible. CAF's own
// mailboxes allow fewer orders: each mailbox is one queue.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "messages/subchannel_events.hpp"
#include "tests/orders/story.hpp"

namespace signalbox::orders {

/// The channel is 0 and the root policy is 1. The n-th cluster that starts has three actors, from
/// first_of(n) on: its cds, its leaf policy, and its subchannel map.
using ActorId = std::uint8_t;
inline constexpr ActorId kChannel = 0;
inline constexpr ActorId kRoot = 1;

constexpr ActorId cds_of(std::size_t cluster) {
  return static_cast<ActorId>(2 + 3 * cluster);
}

constexpr ActorId leaf_of(std::size_t cluster) {
  return cds_of(cluster) + 1;
}

constexpr ActorId map_of(std::size_t cluster) {
  return cds_of(cluster) + 2;
}

constexpr std::size_t cluster_of(ActorId actor) {
  return (actor - 2U) / 3U;
}

/// Time stands still: no rule that is checked depends on it.
inline constexpr Instant kNow{};

struct Letter {
  ActorId from = 0;
  ActorId to = 0;
  std::variant<LbEvent, SubchannelMapEvent> content;
};

class Post {
 public:
  using Pair = std::pair<ActorId, ActorId>;  ///< Sender and receiver.

  explicit Post(Mailboxes mailboxes) : mailboxes_(mailboxes) {}

  void send(Letter letter);

  /// The pairs that have letters, in the order of sender and receiver.
  std::vector<Pair> pairs() const;

  /// The next letter of the pair. Precondition: there is one.
  const Letter& next(const Pair& pair) const { return queues_.at(pair).front(); }

  Letter take(const Pair& pair);

  /// The next letter that the step which sent it also delivers; nullopt: there is none.
  std::optional<Letter> take_at_once();

  /// Drops all letters to the actors of a cluster that was stopped, and from them: their receivers
  /// would ignore the letters.
  void drop_cluster(std::size_t cluster);

  /// The actor that stands for the group of `actor` in keys of worlds. The actors of a group have
  /// one order of letters.
  ActorId group_of(ActorId actor) const;

 private:
  Mailboxes mailboxes_;
  std::map<Pair, std::deque<Letter>> queues_;  ///< Never empty queues.
  std::deque<Letter> at_once_;
};

}  // namespace signalbox::orders
