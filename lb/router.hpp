// SPDX-License-Identifier: Apache-2.0
//
// Router — one call, one answer: route, then pick, out of one snapshot.
//
//   data plane ─▶ Router::pick ─▶ Pick (a receipt: keep it while the call runs)
//                 Router::repick ◀─ queued, after the snapshot changed: cluster and timeout stay
//
// Thread-safe, lock-free, allocates nothing on the complete path. Counts picks in the cluster's
// CallStats. Asks of pickers are told here, and never waited for.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "lb/snapshot_cell.hpp"

namespace signalbox::lb {

/// A call as the data plane knows it. Borrowed for the duration of pick().
struct CallArgs {
  absl::string_view path;  ///< "/package.Service/Method".
  const HeaderSource* headers = nullptr;
  std::uint64_t seed = 0;  ///< Any well-spread number; the same for all picks of one call.
};

/// What became of a call, and the references that it holds until this is destroyed (on any
/// thread). Outlives snapshot, picker and policy. Move-only.
class Pick {
 public:
  PickOutcome outcome() const { return outcome_; }

  /// Set exactly in kComplete.
  const Connection* connection() const { return static_cast<const Connection*>(connection_.get()); }

  /// The chosen cluster; null when the call was not routed.
  const ClusterRef* cluster() const { return static_cast<const ClusterRef*>(cluster_.get()); }

  /// The most that the call may take (A31-24 … 26); nullopt: no limit.
  std::optional<Duration> timeout() const { return timeout_; }

  /// Why, in kFail and kDrop; never one of the codes that A54 forbids. UNAVAILABLE says in brackets
  /// what is wrong with the configuration (A88), and the node's id.
  const absl::Status& status() const { return status_; }

  /// The call ended: tells those who count it, once. A call that never reached its endpoint does
  /// not say so; its Pick is only destroyed.
  void end(int code) { tracking_.end({code}); }

  /// The connection has gone before it was used: the call waits, and holds nothing but its cluster.
  void put_off() {
    if (outcome_ != PickOutcome::kComplete) return;
    outcome_ = PickOutcome::kQueue;
    connection_ = Use();
    tracking_ = Tracking();
  }

  /// Which publication this pick saw: look again when the cell has a later one.
  std::uint64_t sequence() const { return sequence_; }

 private:
  friend class Router;

  // The steps of a pick that begins as queued, and empty but for its cluster.
  void ask(const Snapshot& snapshot, const PickArgs& args);
  void complete(const Complete& chosen, const TrackerList& trackers);
  void refuse(PickOutcome outcome, absl::Status status, absl::string_view source);
  void fail_without(const Snapshot& snapshot);

  PickOutcome outcome_ = PickOutcome::kQueue;
  Use cluster_;
  Use connection_;
  Tracking tracking_;
  std::optional<Duration> timeout_;
  std::optional<std::uint64_t> hash_;  // Once routed it stays, as the cluster does.
  absl::Status status_;
  std::uint64_t sequence_ = 0;
};

class Router {
 public:
  explicit Router(std::shared_ptr<const SnapshotCell> cell) : cell_(std::move(cell)) {}

  /// The first pick of a call: kFail becomes a failure, or waits if the call is wait_for_ready;
  /// kQueue waits for a later publication, then repick().
  Pick pick(const CallArgs& call) const;

  /// Asks again for a call that waits. Once routed, cluster, timeout and hash stay as they were
  /// (A31-1, A31-10, A42); a call that found no configuration is routed now.
  void repick(Pick& pick, const CallArgs& call) const;

  /// The publication that a reader would see now.
  std::uint64_t sequence() const;

 private:
  /// Chooses the cluster. Without one it cannot, and `pick` says why.
  Selection route(const Snapshot& snapshot, const CallArgs& call, Pick& pick) const;

  std::shared_ptr<const SnapshotCell> cell_;
};

}  // namespace signalbox::lb
