// SPDX-License-Identifier: Apache-2.0
//
// LoadWatches — the load reports that a policy asks for.
//
//   policy core ─ WatchLoad ─▶ policy actor ─▶ [LoadWatches] ─▶ LoadStreams::watch
//
// Used by its actor only. The watches end with the actor.

#pragma once

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "actors/io/load_streams.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::actors {

class LoadWatches {
 public:
  /// Ends the watches that `order` does not have, and begins those that it has new. `streams` null:
  /// nothing is watched.
  void set(LoadStreams* streams, const WatchLoad& order) {
    if (streams == nullptr) return;
    Watches kept;
    kept.reserve(order.entries.size());
    for (const WatchLoad::Entry& entry : order.entries) {
      const Key key(entry.connection.get(), entry.listener.get());
      const auto known = watches_.find(key);
      if (known != watches_.end() && order.period == period_) {
        kept.insert(watches_.extract(known));
      } else {
        kept.emplace(key, streams->watch(entry.connection, order.period, entry.listener));
      }
    }
    period_ = order.period;
    // Ends the others now, after the new ones have begun: a connection with both keeps its stream.
    watches_ = std::move(kept);
  }

 private:
  using Key = std::pair<const Connection*, const LoadListener*>;
  using Watches = absl::flat_hash_map<Key, std::unique_ptr<LoadStreams::Watch>>;

  Watches watches_;
  Duration period_{};
};

}  // namespace signalbox::actors
