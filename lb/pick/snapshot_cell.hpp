// SPDX-License-Identifier: Apache-2.0
//
// SnapshotCell — how the control plane hands one immutable Snapshot to any number of readers.
//
//   channel actor ─▶ exchange() ─▶ [cell] ◀─ Reader ◀─ data-plane threads
//          └ the old one, to be destroyed after wait_for_readers(), off the scheduler's threads
//
// Readers take no lock and write no shared cache line; threads need not register. The one place
// that knows how publication works; chosen by benchmark (decision 7).
//
// Invariants
//   S1  A Snapshot is never destroyed while a Reader that could see it is alive.
//   S2  Routes and the clusters they name are published together: clusters(selector) ⊆
//       clusters(picker).

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "lb/route/config_selector.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// What a pick reads is on one cache line; what it reads more of for sessions is on the next.
struct alignas(kCacheLine) Snapshot {
  Generation generation = 0;
  /// Rises with each publication, pickers included; what a queued pick compares.
  std::uint64_t sequence = 0;
  /// Null: there is no configuration, and calls get `failure`, or queue while that is OK.
  ConfigSelectorPtr selector;
  PickerPtr picker;
  absl::Status failure;
  const Seats* seats =
      nullptr;  ///< The picker's, where the selector has a cookie; see note_sessions().
  /// All clusters that calls may refer to, the selector's and earlier ones: a channel that is
  /// restarted keeps them. Null: none.
  std::shared_ptr<const ClusterRefs> clusters;
  /// Read only for calls that fail. Null: none.
  ResolutionNotesPtr notes;
  std::string cookie;  ///< The selector's. Empty: nothing is known before routes are.

  /// Notes what selector and picker say of sessions.
  void note_sessions();
};

class SnapshotCell {
 public:
  /// Holds an empty Snapshot until the first exchange(): readers always see one.
  SnapshotCell();

  /// Waits for readers, then destroys what is published. Blocks, as wait_for_readers() does.
  ~SnapshotCell();
  SnapshotCell(const SnapshotCell&) = delete;
  SnapshotCell& operator=(const SnapshotCell&) = delete;

  /// Publishes `next`, and returns what was published before: destroy it after wait_for_readers().
  /// Any thread may publish. Precondition: `next` is not null.
  std::unique_ptr<const Snapshot> exchange(std::unique_ptr<const Snapshot> next);

  /// Returns when every Reader that was alive at the call is gone. Blocks; never call it from a
  /// scheduler thread, nor while holding a Reader.
  static void wait_for_readers();

  /// A read section. Short; may be nested; must end on the thread where it began.
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
