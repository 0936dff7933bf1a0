// SPDX-License-Identifier: Apache-2.0
//
// Router — finds the endpoint of one call in one snapshot: route, filters, then pick.
//
//   data plane ─▶ Router::pick ─▶ Pick (a receipt: keep it while the call runs)
//                 Router::repick ◀─ queued, after the snapshot changed: cluster and timeout stay
//                                ◀─ delayed, after end_delay()
//            ─▶ Router::explain ─▶ Explanation: the same, step by step, and nothing is done
//
// A call with a session (A55) may have a cookie for its application: Pick::set_cookie().
//
// Thread-safe, lock-free, allocates nothing on the complete path. A pick is counted in the
// CallStats of the leaf that it reached, else of the route's cluster. The router sends the asks of
// pickers, and never waits for an answer.
//
// The texts of all failures have one form, and say everything once:
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

#include "lb/pick/snapshot_cell.hpp"
#include "lb/route/filtered_call.hpp"
#include "messages/counting/leaf_calls.hpp"
#include "messages/explanation.hpp"

namespace signalbox::lb {

/// The caller, for the texts of failures. Either may be empty.
struct CallerNames {
  std::string target;   ///< "xds:///orders"
  std::string node_id;  ///< Empty: the configuration's notes name the node.
};

/// A call as the data plane knows it. Borrowed for the duration of pick().
struct CallArgs {
  /// The text that routes match: "/package.Service/Method", or the path of a URL without its query.
  absl::string_view path;
  /// The headers that header matchers and hash policies (A42) read, such as a user's id that keeps
  /// a user on one endpoint. Read on the thread that picks, and only headers that routes name.
  /// Null: none.
  const HeaderSource* headers = nullptr;
  /// The source of all draws of the call: weighted clusters, fractions, drops, localities,
  /// endpoints, and the place on a ring when the route has no hash policy. Each call has its own
  /// number, and all picks of one attempt have the same number: equal seeds draw equally.
  std::uint64_t seed = 0;
  /// Each pick writes the :authority of the call here, when the route wants the endpoint's hostname
  /// and the endpoint has one (A81); else the text becomes empty. An authority that the application
  /// chose itself comes first. A string with room for it keeps the pick free of allocations. Null:
  /// not wanted.
  std::string* authority = nullptr;
  /// The addresses of the call's earlier attempts. A retry passes over these addresses when the
  /// policy does not bind the call and another endpoint is READY. Null: none.
  const TriedAddresses* tried = nullptr;
};

/// The result of a call's pick, and the references that the call holds until the Pick is destroyed
/// (on any thread). Outlives snapshot, picker and policy. Move-only.
class Pick {
 public:
  PickOutcome outcome() const { return outcome_; }

  /// Set exactly in kComplete.
  const Connection* connection() const { return static_cast<const Connection*>(connection_.get()); }

  /// The route's cluster; null: the call was not routed.
  const ClusterRef* cluster() const { return static_cast<const ClusterRef*>(cluster_.get()); }

  /// Below an aggregate, the leaf that takes the call. Null: cluster() takes it, or the pick is not
  /// complete.
  const LeafCalls* leaf() const { return static_cast<const LeafCalls*>(leaf_.get()); }

  /// The counters of the call: those of the leaf that takes it (A89), else of the route's cluster.
  /// Null: calls are not counted. Precondition: the call was routed.
  const CallStats* stats() const { return leaf_ ? leaf()->stats() : cluster()->stats(); }

  /// The longest time that the call may take (A31-24 … 26); nullopt: no limit.
  std::optional<Duration> timeout() const { return timeout_; }

  /// When the call may be tried again (A44); without a retry policy, never.
  const RetryRules& retry() const { return retry_; }

  /// The reason, in kFail and kDrop. It never has a code that A54 forbids, unless a filter ended
  /// the call: a filter may use any code. OK: the call ends as if the server had answered with OK
  /// alone (A33). See Router::describe().
  const absl::Status& status() const { return status_; }

  /// The priority that made the call wait or fail; nullopt: no priority policy chose it, or the
  /// pick is complete.
  std::optional<std::uint8_t> priority() const {
    const bool is_known =
        outcome_ != PickOutcome::kComplete && priority_ != PickResult::kNoPriority;
    return is_known ? std::optional(priority_) : std::nullopt;
  }

  /// The sum of the delays that filters ordered (A33). While it lasts, the pick is kQueue and
  /// publications do not wake the call. 0: no delay, or it is over.
  Duration delay() const { return filtered_ == nullptr ? Duration::zero() : filtered_->delay; }

  /// The end of the delay, set by begin_delay().
  Instant due() const { return filtered_ == nullptr ? Instant() : filtered_->due; }

  /// Sets due() to `now` plus the delay. Precondition: delay() > 0.
  void begin_delay(Instant now) { filtered_->due = now + filtered_->delay; }

  /// The delay is over: repick() goes on with the call.
  void end_delay() {
    if (filtered_ == nullptr) return;
    filtered_->delay = Duration::zero();
    filtered_->holds.clear();
  }

  /// The headers that filters add to the call's own headers. Empty from the second time on.
  AddedHeaders take_headers() {
    return filtered_ == nullptr ? AddedHeaders() : std::exchange(filtered_->headers, {});
  }

  /// The value of "set-cookie" for the response (A55): in its headers, or in its trailers when it
  /// has only trailers. Empty: none, and always so unless the pick is complete. repick() and
  /// put_off() change it.
  const std::string& set_cookie() const;

  /// Reports the end of the call to its trackers, once. For a call that never reached its endpoint,
  /// end() is not called, and the Pick is only destroyed.
  /// `load`: the endpoint's load report, which came with the response at `now`; null: none.
  void end(int code, const LoadReport* load = nullptr, Instant now = {}) {
    tracking_.end({code, load, now});
    if (session_ != nullptr) session_->reached();
  }

  /// Whether a policy wants the endpoint's load report. False once the call has ended.
  bool wants_load() const { return tracking_.wants_load(); }

  /// Releases the connection, the leaf and the trackers of a complete pick, drops its Set-Cookie,
  /// and lets the call wait. Other picks do not change. For a connection that went away before its
  /// use, or before another attempt.
  void put_off() {
    if (outcome_ != PickOutcome::kComplete) return;
    outcome_ = PickOutcome::kQueue;
    priority_ = PickResult::kNoPriority;
    connection_ = Use();
    leaf_ = Use();
    tracking_ = Tracking();
    if (session_ != nullptr) session_->forget();
  }

  /// The publication that this pick saw. A waiting call picks again when the cell has a later one.
  std::uint64_t sequence() const { return sequence_; }

 private:
  friend class Router;

  /// The answer of a pick beside its outcome. Valid as long as the picker is.
  struct Answer {
    Affinity affinity = {};
    const LeafCalls* leaf = nullptr;
  };

  // The steps of a pick. The Pick begins queued, without connection, leaf and trackers. When
  // `authority` is not null, ask() writes the endpoint's hostname there, if the endpoint has one.
  template <typename Sink>
  Answer ask(const Snapshot& snapshot,
             const PickArgs& args,
             std::string* authority,
             const Sink& sink);
  bool is_held_back();
  template <typename Sink>
  void complete(const Complete& chosen, const PickResult& result, const Sink& sink);
  void refuse(PickOutcome outcome, absl::Status status, absl::string_view source);
  void fail_without(const Snapshot& snapshot);

  PickOutcome outcome_ = PickOutcome::kQueue;
  bool auto_host_rewrite_ = false;                   // Fixed once the call is routed.
  std::uint8_t priority_ = PickResult::kNoPriority;  // Of the last pick that was not complete.
  Use cluster_;
  Use connection_;
  Use leaf_;
  Tracking tracking_;
  std::optional<Duration> timeout_;
  // Fixed once the call is routed.
  std::optional<std::uint64_t> hash_;
  RetryRules retry_;
  std::unique_ptr<Filtered> filtered_;  // The orders of filters; null: none.
  SessionPtr session_;                  // Null: the call has none.
  absl::Status status_;
  std::uint64_t sequence_ = 0;
};

class Router {
 public:
  /// The most bytes that an error text keeps of the reason from a policy, a resolver or a peer. The
  /// words that describe() adds do not count.
  static constexpr std::size_t kLongestReason = 4096;

  /// `sessions`: the sessions of the target. Null: cookies are plain, time stands still, and there
  /// are no warnings.
  explicit Router(std::shared_ptr<const SnapshotCell> cell,
                  CallerNames names = {},
                  SessionsPtr sessions = nullptr);

  /// The first pick of a call. kFail becomes a failure, or waits if the call is wait_for_ready.
  /// kQueue waits for a later publication, then repick().
  [[gnu::hot]] Pick pick(const CallArgs& call) const;

  /// Picks again for a call that waits, or is retried. Once routed, cluster, timeout, hash and
  /// retry policy stay as they were (A31-1, A31-10, A42), and so does the session (A55-37). Filters
  /// are not asked again. A call that found no configuration is routed now. Changes nothing while
  /// the call is delayed.
  [[gnu::hot]] void repick(Pick& pick, const CallArgs& call) const;

  /// Gives `why` the form that all failures have: target and cluster first, and the node's id last,
  /// in brackets. The faults of the configuration come before the id when they may be the cause
  /// (A88: UNAVAILABLE, DEADLINE_EXCEEDED). The statuses of picks have this form already.
  absl::Status describe(const absl::Status& why, const ClusterRef* cluster = nullptr) const;

  /// The answer that pick() would give now, with each decision, its reason, and the resource or
  /// option that sets it. When a filter delays the call, the explanation goes on as after the
  /// delay. Takes no lock; allocates. Leaves no trace: it counts, asks and marks nothing, takes no
  /// turn, and holds connections and clusters only while it runs. Filters and pickers of the
  /// program's own without an explain() may break that promise. `now`: for durations in the steps.
  Explanation explain(const CallArgs& call, Instant now, Turns turns = Turns::kAsTheyAre) const;

  /// The publication that a reader would see now.
  std::uint64_t sequence() const;

 private:
  /// repick(), without the warnings that are logged after the read section.
  template <typename Sink>
  [[gnu::hot]] void look(Pick& pick, const CallArgs& call, const Sink& sink) const;

  /// Chooses the cluster, and asks the filters. Without a cluster, `pick` has the reason.
  template <typename Sink>
  Selection route(const Snapshot& snapshot,
                  const CallArgs& call,
                  const Foresight& foresight,
                  Pick& pick,
                  const Sink& sink) const;

  absl::Status describe(const absl::Status& why,
                        const ClusterRef* cluster,
                        const Snapshot& snapshot) const;

  std::shared_ptr<const SnapshotCell> cell_;
  CallerNames names_;
  SessionsPtr sessions_;
};

}  // namespace signalbox::lb
