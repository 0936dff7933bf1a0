// SPDX-License-Identifier: Apache-2.0
//
// Router — one call, one answer: route, then pick, out of one snapshot.
//
//   data plane ─▶ Router::pick ─▶ Pick (a receipt: keep it while the call runs)
//                 Router::repick ◀─ queued, after the snapshot changed: cluster and timeout stay
//
// Thread-safe, lock-free, allocates nothing on the complete path. Counts picks in the cluster's
// CallStats. Asks of pickers are told here, and never waited for.
//
// Whatever a call fails with, its text has one form, and says everything once:
//
//   xds:///orders: cluster c: priority 2 of 2: round_robin: all 3 endpoints failed; last error:
//   10.0.0.1:80: connection refused (EDS resource "e": xDS server down; node ID: n)

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "lb/snapshot_cell.hpp"

namespace signalbox::lb {

/// Who calls, for the texts of failures. Either may be empty.
struct CallerNames {
  std::string target;   ///< "xds:///orders"
  std::string node_id;  ///< Empty: as the configuration's notes say.
};

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

  /// Why, in kFail and kDrop; never one of the codes that A54 forbids. See Router::explain().
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
  /// Of what a policy, a resolver or a peer says of a failure, texts keep so many bytes; what
  /// explain() adds to it comes on top.
  static constexpr std::size_t kLongestReason = 4096;

  explicit Router(std::shared_ptr<const SnapshotCell> cell, CallerNames names = {})
      : cell_(std::move(cell)), names_(std::move(names)) {}

  /// The first pick of a call: kFail becomes a failure, or waits if the call is wait_for_ready;
  /// kQueue waits for a later publication, then repick().
  Pick pick(const CallArgs& call) const;

  /// Asks again for a call that waits. Once routed, cluster, timeout and hash stay as they were
  /// (A31-1, A31-10, A42); a call that found no configuration is routed now.
  void repick(Pick& pick, const CallArgs& call) const;

  /// `why` in the form of all failures: it says the target and the cluster first, and in brackets
  /// at its end the node's id, and what is wrong with the configuration where that may be why the
  /// call found nobody (A88: UNAVAILABLE, DEADLINE_EXCEEDED). Statuses of picks have it already.
  absl::Status explain(const absl::Status& why, const ClusterRef* cluster = nullptr) const;

  /// The publication that a reader would see now.
  std::uint64_t sequence() const;

 private:
  /// Chooses the cluster. Without one it cannot, and `pick` says why.
  Selection route(const Snapshot& snapshot, const CallArgs& call, Pick& pick) const;

  absl::Status explain(const absl::Status& why,
                       const ClusterRef* cluster,
                       const Snapshot& snapshot) const;

  std::shared_ptr<const SnapshotCell> cell_;
  CallerNames names_;
};

}  // namespace signalbox::lb
