// SPDX-License-Identifier: Apache-2.0
//
// SnapshotCell — how the control plane hands one immutable Snapshot to any number of readers.
//
//   channel actor ─▶ exchange() ─▶ [cell] ◀─ Reader ◀─ data-plane threads
//          └ the old snapshot, destroyed after wait_for_readers(), off the scheduler's threads
//
// Readers take no lock and write no shared cache line. Their threads need not register: liburcu
// does that, under a lock, when a thread makes its first Reader. Only this class knows that it uses
// RCU. Benchmarks led to RCU (docs/decisions, 7).
//
// Invariants
//   S1  A Snapshot is never destroyed while a Reader that could see it is alive.
//   S2  Routes and the clusters they name are published together: clusters(selector) ⊆
//       clusters(picker).

#pragma once

#include <atomic>
#include <memory>

#include "lb/route/config_selector.hpp"
#include "lb/session/foresight.hpp"
#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// The data of picks: routes and pickers. The fields that every pick reads are on one cache line.
/// `sessions` begins at the end of that line, so its fields that only calls with sessions read are
/// on the next line.
struct alignas(kCacheLine) Snapshot {
  Generation generation = 0;
  /// Rises with each publication, also if only the picker is new. A waiting call compares it to
  /// learn whether there is a newer snapshot.
  std::uint64_t sequence = 0;
  /// Null: there is no configuration. Calls get `failure`, or queue while `failure` is OK.
  ConfigSelectorPtr selector;
  PickerPtr picker;
  absl::Status failure;
  /// Finds the host that a call's cookie names; see record_sessions().
  SessionLead sessions;
  /// All clusters that calls may hold: those of the selector, earlier ones, and those of a selector
  /// that is not published yet. A restarted channel actor takes them over from here. Null: none.
  std::shared_ptr<const ClusterRefs> clusters;
  /// Errors and the node id for the texts of failed calls. Null: none.
  ResolutionNotesPtr notes;

  /// Sets `sessions` from selector and picker.
  void record_sessions();
};

static_assert(sizeof(Snapshot) == 2 * kCacheLine);

class SnapshotCell {
 public:
  /// Begins with an empty Snapshot, so readers always see one.
  SnapshotCell();

  /// Waits for readers, then destroys the published snapshot. Blocks, as wait_for_readers() does.
  ~SnapshotCell();
  SnapshotCell(const SnapshotCell&) = delete;
  SnapshotCell& operator=(const SnapshotCell&) = delete;

  /// Publishes `next`, and returns the previous snapshot, to be destroyed after wait_for_readers().
  /// Any thread may publish. Precondition: `next` is not null.
  std::unique_ptr<const Snapshot> exchange(std::unique_ptr<const Snapshot> next);

  /// Returns when every Reader that was alive at the call is gone. Blocks; never call it from a
  /// scheduler thread, nor while holding a Reader.
  static void wait_for_readers();

  /// A read section. It is short, may be nested, and must end on the thread where it began.
  class Reader {
   public:
    [[gnu::hot]] explicit Reader(const SnapshotCell& cell);
    [[gnu::hot]] ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    const Snapshot& operator*() const { return *snapshot_; }

    const Snapshot* operator->() const { return snapshot_; }

   private:
    const Snapshot* snapshot_;
  };

 private:
  std::atomic<const Snapshot*> current_;
};

}  // namespace signalbox::lb
