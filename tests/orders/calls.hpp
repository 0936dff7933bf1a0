// SPDX-License-Identifier: Apache-2.0
//
// Calls — the data plane of a world: the published snapshot, and calls that wait for READY.
//
//   publish() ─▶ [newest snapshot] ─▶ read() ─▶ choose() ─▶ pick_again() ─▶ end()
//                                      └ a read section, which delays the grace of its snapshot
//
// A call reads the snapshot in one step, and takes its use of the cluster in a later one, so
// anything may happen between the two. A call that waits picks again in a newer snapshot, and keeps
// its cluster.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lb/pick/snapshot_cell.hpp"
#include "tests/orders/story.hpp"

namespace signalbox::orders {

using SnapshotPtr = std::shared_ptr<const lb::Snapshot>;

enum class CallPhase : std::uint8_t { kNotBegun, kReading, kWaiting, kRunning, kEnded };

struct Call {
  CallPhase phase = CallPhase::kNotBegun;
  SnapshotPtr reading;                  ///< Set while the call is kReading.
  const lb::ClusterRef* ref = nullptr;  ///< The call's cluster, while it is kWaiting or kRunning.
  Use use;
  std::uint64_t seen = 0;  ///< The sequence of the snapshot of the last pick.
};

class Calls {
 public:
  explicit Calls(const Story& story) : plant_(story.plant), calls_(story.calls) {}

  void publish(lb::Snapshot snapshot) {
    newest_ = std::make_shared<const lb::Snapshot>(std::move(snapshot));
  }

  /// Null: nothing was published yet.
  const SnapshotPtr& newest() const { return newest_; }

  const std::vector<Call>& all() const { return calls_; }

  /// Whether a call reads a snapshot that is older than this one.
  bool is_older_read(std::uint64_t sequence) const;

  /// What the call can do next. Calls begin in the order of their numbers, because they are alike.
  /// A call that begins before there are routes only waits for them, so it is not modelled.
  bool may_read(std::size_t call) const;

  bool may_choose(std::size_t call) const { return calls_[call].phase == CallPhase::kReading; }

  bool may_pick_again(std::size_t call) const;

  bool may_end(std::size_t call) const { return calls_[call].phase == CallPhase::kRunning; }

  void read(std::size_t call);
  void choose(std::size_t call);
  void pick_again(std::size_t call);
  void end(std::size_t call);

  /// The number of calls that hold this reference.
  std::int64_t holders_of(const lb::ClusterRef* ref) const;

 private:
  void pick(Call& call, const lb::Snapshot& snapshot);

  Plant plant_;
  SnapshotPtr newest_;
  std::vector<Call> calls_;
  std::vector<Use> leaked_;  ///< For Plant::kUseIsNeverReleased.
};

/// Whether the snapshot's picker knows the cluster (A31-18).
bool picker_knows(const lb::Snapshot& snapshot, const ClusterName& cluster);

/// The reference to the cluster that the snapshot's selector chooses for all calls. Precondition:
/// the snapshot has a selector.
const lb::ClusterRef& choice_of(const lb::Snapshot& snapshot);

/// The endpoint to which the snapshot sends a call now; empty: the call would wait or fail.
std::string endpoint_of(const lb::Snapshot& snapshot);

}  // namespace signalbox::orders
