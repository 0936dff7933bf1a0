// SPDX-License-Identifier: Apache-2.0
//
// SessionHomes — which of several leaf clusters has the host of a session (ENV-27).
//
//   leaves' pickers ─▶ Picker::session_hint() ─▶ [SessionHomes] ─▶ tiered's picker: the call's leaf
//
// The text of a plain cookie of a READY host leads to a seat in one of the leaves. For any other
// cookie, each leaf is asked what it can do for the cookie's hosts. Immutable once filled; lives as
// long as the pickers.

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

/// A leaf (its place among all leaves), and its promise for the hosts of a cookie.
struct SessionHome {
  std::size_t leaf = 0;
  HostPromise promise = HostPromise::kUnknown;
};

class SessionHomes {
 public:
  /// Adds the next leaf. Null: the leaf has no hosts of sessions.
  void add(const SessionHint* leaf) { seats_.push_back(seats_of(leaf)); }

  /// The first leaf in which the cookie's text leads to a seat. nullopt: there is none.
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
  std::vector<const Seats*> seats_;  ///< The leaves' seats, in the order of leaves.
};

}  // namespace signalbox::lb
