// SPDX-License-Identifier: Apache-2.0
//
// SessionHomes — finds the leaf cluster, among those of an aggregate, that has a session's host
// (ENV-27).
//
//   leaves' pickers ─▶ Picker::session_hint() ─▶ [SessionHomes] ─▶ tiered's picker: the call's leaf
//
// The hash of a cookie of a fit, READY host finds the host's seat (the result of a pick for it) in
// one of the leaves, if the cookie is unsealed and as signalbox writes it in gRPC's form. For any
// other cookie, every leaf says what it can do for the cookie's hosts (HostPromise). Immutable once
// filled; lives as long as the pickers.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

#include "lb/session/seats.hpp"
#include "lb/session/session_args.hpp"
#include "lb/session/session_hosts.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

/// A leaf, by its index among all leaves, and what it can do for the hosts of a cookie.
struct SessionHome {
  std::size_t leaf = 0;
  HostPromise promise = HostPromise::kUnknown;
};

class SessionHomes {
 public:
  /// Adds the next leaf, by its picker's session_hint(). Null: the leaf has no session hosts.
  void add(const SessionHint* leaf) { seats_.push_back(seats_of(leaf)); }

  /// The first leaf with a seat for the undecoded cookie. nullopt: no leaf has one.
  std::optional<std::size_t> at_sight(const SessionArgs& session) const {
    for (std::size_t leaf = 0; leaf < seats_.size(); ++leaf) {
      if (seats_[leaf] != nullptr && seats_[leaf]->find(session.key, session.seat) != nullptr)
        return leaf;
    }
    return std::nullopt;
  }

  /// The leaf with the best HostPromise for these hosts; among equals, the first. kUnknown, with
  /// leaf 0: no leaf knows the hosts.
  SessionHome of(absl::string_view hosts) const;

 private:
  std::vector<const Seats*> seats_;  ///< The Seats of each leaf, in order; null: it has none.
};

}  // namespace signalbox::lb
