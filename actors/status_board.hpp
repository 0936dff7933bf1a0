// SPDX-License-Identifier: Apache-2.0
//
// status_board — where actors publish what operators may see of them.
//
//   channel, policy, subchannel_map ─ a piece with each change ─▶ [TargetBoard] ─▶ pieces()
//                        policy ─ PriorityMoved ─▶ [ChangeLog] ─▶ last()     └▶ Runtime::status
//                                                          ready() ─▶ /ready, health
//
// The actor that decides a fact publishes it here, and no reader asks an actor. A piece is the
// present state of one subject, such as a subchannel or the priorities of a cluster.
// Publishing replaces one piece, and its cost does not grow with the number of endpoints. A reader
// copies pieces. An actor waits for a reader at most while the reader copies one shard of a table,
// the list of the target's priorities and loads, or the last changes.
//
// Thread-safe. A board outlives the actors of its target: a restarted actor replaces the piece of
// the actor that died.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "lb/subchannel/subchannel_map_core.hpp"
#include "messages/lb_events.hpp"
#include "messages/observation.hpp"

namespace signalbox::actors {

/// The last changes of priority of all targets of a runtime. The number of a change tells how many
/// changes came before it.
class ChangeLog {
 public:
  static constexpr std::size_t kMost = 64;

  struct Change {
    std::uint64_t number = 0;  ///< The first is 1.
    std::string target;
    PriorityMoved move;
  };

  void add(const std::string& target, PriorityMoved move);

  /// The last kMost changes, oldest first.
  std::vector<Change> last() const;

  /// The number of the last change; 0: there was none.
  std::uint64_t number() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t number_ = 0;
  std::deque<Change> changes_;
};

/// Counts the changes of what a board shows. Tables and pieces share it, because they may outlive
/// their board.
using Revision = std::atomic<std::uint64_t>;

/// A subchannel's state, as its subchannel map published it.
struct SubchannelPiece {
  EndpointState state = EndpointState::kIdle;
  ConnectivityState raw = ConnectivityState::kIdle;
  Instant since{};
  absl::Status why;
  std::uint32_t ejections = 0;
  /// Never keeps the connection alive.
  std::weak_ptr<const Connection> connection;
};

using SubchannelPieces = absl::flat_hash_map<Address, SubchannelPiece>;

/// The subchannels of one subchannel map. One actor writes, any thread reads.
class SubchannelTable {
 public:
  explicit SubchannelTable(std::shared_ptr<Revision> revision) : revision_(std::move(revision)) {}

  /// The board does not show the table any more.
  ~SubchannelTable() { revision_->fetch_add(1, std::memory_order_relaxed); }

  SubchannelTable(const SubchannelTable&) = delete;
  SubchannelTable& operator=(const SubchannelTable&) = delete;

  void set(const Address& address, const std::optional<lb::SubchannelSeen>& seen);

  /// Copies the table, shard by shard.
  SubchannelPieces copy() const;

 private:
  static constexpr std::size_t kShards = 16;

  struct Shard {
    mutable std::mutex mutex;
    SubchannelPieces pieces;
  };

  Shard& shard_of(const Address& address) { return shards_[absl::HashOf(address) % kShards]; }

  const std::shared_ptr<Revision> revision_;
  std::array<Shard, kShards> shards_;
};

/// A cluster in the tree of one target: the leaf or aggregate, and the aggregate above it.
struct ClusterPlace {
  ClusterName cluster;
  ClusterName aggregate;  ///< Empty: there is none.

  friend auto operator<=>(const ClusterPlace&, const ClusterPlace&) = default;
};

/// The pieces of one target. The subchannels are copied shard by shard, after all other pieces.
struct TargetPieces {
  /// The configuration that the policies got last; its config and xds are null before the first.
  ConfigUpdated applied;
  Instant applied_at{};
  /// This field and the next four are about the snapshot that picks see.
  Generation generation = 0;
  ConnectivityState state = ConnectivityState::kConnecting;
  std::optional<Instant> since;  ///< nullopt: nothing was published.
  absl::Status failure;
  bool ready = false;
  std::map<ClusterPlace, std::shared_ptr<const PrioritiesSeen>> priorities;
  std::map<ClusterPlace, SubchannelPieces> subchannels;
  /// In tiered mode, the share of an aggregate's calls in percent. Keys: the leaf in the aggregate,
  /// and the leaf's priority.
  std::map<std::pair<ClusterPlace, std::size_t>, std::uint32_t> loads;
};

/// Pieces by key. Their actors own them; this map has weak pointers, so an actor's pieces vanish
/// when the actor ends.
template <typename Key, typename Piece>
class WeakPieces {
 public:
  void keep(const Key& key, const std::shared_ptr<Piece>& piece) {
    pieces_.insert_or_assign(key, piece);
    if (pieces_.size() <= swept_ * 2 + 16) return;
    std::erase_if(pieces_, [](const auto& entry) { return entry.second.expired(); });
    swept_ = pieces_.size();
  }

  std::vector<std::pair<Key, std::shared_ptr<Piece>>> all() const {
    std::vector<std::pair<Key, std::shared_ptr<Piece>>> all;
    for (const auto& [key, piece] : pieces_) {
      if (auto known = piece.lock()) all.emplace_back(key, std::move(known));
    }
    return all;
  }

 private:
  std::map<Key, std::weak_ptr<Piece>> pieces_;
  std::size_t swept_ = 0;  // The number of entries after the last sweep.
};

class TargetBoard {
 public:
  /// `changes`: null in tests that have no runtime.
  explicit TargetBoard(std::string target = {}, std::shared_ptr<ChangeLog> changes = nullptr)
      : target_(std::move(target)), changes_(std::move(changes)) {}

  // --- for actors ---

  void applied(ConfigUpdated update, Instant now);

  /// The channel actor has published a snapshot. `failure`: why no configuration is in use; OK: a
  /// configuration is in use, or the first one has not come yet. `is_configured`: whether a
  /// configuration is in use.
  void published(Generation generation,
                 ConnectivityState state,
                 const absl::Status& failure,
                 bool is_configured,
                 Instant now);

  /// Makes the table in which a subchannel map shows its subchannels. The board shows the table
  /// until its last owner drops it, or until another map opens a table for the same place.
  std::shared_ptr<SubchannelTable> open_table(const ClusterPlace& place);

  /// The piece is shown until the returned object is destroyed, or until a later piece replaces it.
  std::shared_ptr<const void> show(PrioritiesSeen seen);

  /// As show(PrioritiesSeen). Precondition: `load` has a percentage.
  std::shared_ptr<const void> show(const TierLoad& load);

  void moved(PriorityMoved move);

  // --- for readers ---

  /// Whether calls can be sent: a configuration is in use, and the channel is READY or IDLE. Reads
  /// an atomic.
  bool ready() const { return ready_->load(std::memory_order_acquire); }

  /// Rises with each change of what pieces() returns, and when a change of priority is noted. The
  /// value may rise without a change. Reads an atomic.
  std::uint64_t revision() const { return revision_->load(std::memory_order_relaxed); }

  /// The atomic of ready(), for readers that must not keep the board.
  std::shared_ptr<const std::atomic<bool>> ready_flag() const { return ready_; }

  TargetPieces pieces() const;

  // --- for the runtime ---

  /// Drops the configuration, which holds filters of the program. Call it when the target's actors
  /// have ended.
  void drop_config();

 private:
  void record_change() { revision_->fetch_add(1, std::memory_order_relaxed); }

  const std::string target_;
  const std::shared_ptr<ChangeLog> changes_;
  const std::shared_ptr<Revision> revision_ = std::make_shared<Revision>(0);
  const std::shared_ptr<std::atomic<bool>> ready_ = std::make_shared<std::atomic<bool>>(false);
  mutable std::mutex mutex_;
  ConfigUpdated applied_;
  Instant applied_at_{};
  Generation generation_ = 0;
  ConnectivityState state_ = ConnectivityState::kConnecting;
  std::optional<Instant> since_;
  absl::Status failure_;
  WeakPieces<ClusterPlace, const PrioritiesSeen> priorities_;
  WeakPieces<ClusterPlace, SubchannelTable> tables_;
  WeakPieces<std::pair<ClusterPlace, std::size_t>, const std::uint32_t> loads_;
};

}  // namespace signalbox::actors
