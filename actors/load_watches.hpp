// SPDX-License-Identifier: Apache-2.0
//
// LoadWatches — the connections on which a policy asks endpoints for their load (A51).
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
  /// Makes the watches equal to `order`: ends the others and begins the missing ones. If the period
  /// has changed, all watches begin anew. `streams` null: nothing is watched.
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
    // Ends the old watches after the new ones have begun. So a connection that has an old and a new
    // watch keeps its stream.
    watches_ = std::move(kept);
  }

 private:
  using Key = std::pair<const Connection*, const LoadListener*>;
  using Watches = absl::flat_hash_map<Key, std::unique_ptr<LoadStreams::Watch>>;

  Watches watches_;
  Duration period_{};
};

}  // namespace signalbox::actors
