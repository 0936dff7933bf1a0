// SPDX-License-Identifier: Apache-2.0
#include "actors/status_board.hpp"

#include <memory>
#include <utility>

#include "lb/shrink.hpp"

namespace signalbox::actors {
namespace {

// A piece with its revision, which rises when the last owner drops the piece.
template <typename Piece>
struct Shown {
  Shown(Piece what, std::shared_ptr<Revision> its)
      : piece(std::move(what)), revision(std::move(its)) {}

  ~Shown() { revision->fetch_add(1, std::memory_order_relaxed); }

  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  const Piece piece;
  const std::shared_ptr<Revision> revision;
};

template <typename Piece>
std::shared_ptr<const Piece> make_piece(Piece piece, const std::shared_ptr<Revision>& revision) {
  auto shown = std::make_shared<const Shown<Piece>>(std::move(piece), revision);
  const Piece* const inner = &shown->piece;
  return {std::move(shown), inner};
}

}  // namespace

// --- changes ---

void ChangeLog::add(const std::string& target, PriorityMoved move) {
  const std::lock_guard lock(mutex_);
  changes_.push_back({++number_, target, std::move(move)});
  if (changes_.size() > kMost) changes_.pop_front();
}

std::vector<ChangeLog::Change> ChangeLog::last() const {
  const std::lock_guard lock(mutex_);
  return {changes_.begin(), changes_.end()};
}

std::uint64_t ChangeLog::number() const {
  const std::lock_guard lock(mutex_);
  return number_;
}

// --- subchannels ---

void SubchannelTable::set(const Address& address, const std::optional<lb::SubchannelSeen>& seen) {
  Shard& shard = shard_of(address);
  const std::lock_guard lock(shard.mutex);
  revision_->fetch_add(1, std::memory_order_relaxed);
  if (!seen) {
    shard.pieces.erase(address);
    lb::shrink_if_sparse(shard.pieces);
    return;
  }
  shard.pieces[address] = {
      seen->state, seen->raw, seen->since, seen->why, seen->ejections, seen->connection};
}

SubchannelPieces SubchannelTable::copy() const {
  SubchannelPieces all;
  for (const Shard& shard : shards_) {
    SubchannelPieces some;
    {
      const std::lock_guard lock(shard.mutex);
      some = shard.pieces;
    }
    all.merge(some);
  }
  return all;
}

// --- a target ---

void TargetBoard::applied(ConfigUpdated update, Instant now) {
  const std::lock_guard lock(mutex_);
  std::swap(applied_, update);  // The old configuration is destroyed after the lock.
  applied_at_ = now;
  record_change();
}

void TargetBoard::drop_config() {
  ConfigUpdated last;  // Destroyed after the lock.
  const std::lock_guard lock(mutex_);
  std::swap(applied_, last);
  record_change();
}

void TargetBoard::published(Generation generation,
                            ConnectivityState state,
                            const absl::Status& failure,
                            bool is_configured,
                            Instant now) {
  const bool can_send = state == ConnectivityState::kReady || state == ConnectivityState::kIdle;
  const bool is_ready = is_configured && failure.ok() && can_send;
  const std::lock_guard lock(mutex_);
  // The channel publishes pickers far more often than states.
  if (!since_ || state != state_ || generation != generation_ || failure != failure_ ||
      is_ready != ready())
    record_change();
  if (!since_ || state != state_) since_ = now;
  generation_ = generation;
  state_ = state;
  failure_ = failure;
  ready_->store(is_ready, std::memory_order_release);
}

std::shared_ptr<SubchannelTable> TargetBoard::open_table(const ClusterPlace& place) {
  auto table = std::make_shared<SubchannelTable>(revision_);
  const std::lock_guard lock(mutex_);
  tables_.keep(place, table);
  record_change();
  return table;
}

std::shared_ptr<const void> TargetBoard::show(PrioritiesSeen seen) {
  const auto piece = make_piece(std::move(seen), revision_);
  const std::lock_guard lock(mutex_);
  priorities_.keep({piece->cluster, piece->aggregate}, piece);
  record_change();
  return piece;
}

std::shared_ptr<const void> TargetBoard::show(const TierLoad& load) {
  const auto piece = make_piece(*load.percent, revision_);
  const std::lock_guard lock(mutex_);
  loads_.keep({{load.leaf, load.cluster}, load.priority}, piece);
  record_change();
  return piece;
}

void TargetBoard::moved(PriorityMoved move) {
  if (changes_ != nullptr) changes_->add(target_, std::move(move));
  record_change();
}

TargetPieces TargetBoard::pieces() const {
  TargetPieces pieces;
  std::vector<std::pair<ClusterPlace, std::shared_ptr<SubchannelTable>>> tables;
  {
    const std::lock_guard lock(mutex_);
    pieces.applied = applied_;
    pieces.applied_at = applied_at_;
    pieces.generation = generation_;
    pieces.state = state_;
    pieces.since = since_;
    pieces.failure = failure_;
    pieces.ready = ready();
    for (auto& [place, piece] : priorities_.all())
      pieces.priorities.emplace(place, std::move(piece));
    for (const auto& [place, load] : loads_.all())
      pieces.loads.emplace(place, *load);
    tables = tables_.all();
  }
  for (const auto& [place, table] : tables)
    pieces.subchannels.emplace(place, table->copy());
  return pieces;
}

}  // namespace signalbox::actors
