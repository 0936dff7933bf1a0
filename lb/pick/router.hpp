// SPDX-License-Identifier: Apache-2.0
//
// Router — one call, one answer: route, filters, then pick, out of one snapshot.
//
//   data plane ─▶ Router::pick ─▶ Pick (a receipt: keep it while the call runs)
//                 Router::repick ◀─ queued, after the snapshot changed: cluster and timeout stay
//                                ◀─ delayed, after end_delay()
//            ─▶ Router::explain ─▶ Explanation: the same, told step by step, and nothing is done
//
// A call of a session (A55) may have something to tell its application: Pick::set_cookie().
//
// Thread-safe, lock-free, allocates nothing on the complete path. Counts picks in the CallStats of
// the leaf that they came to, else of the cluster of the route. Asks of pickers are told here, and
// never waited for.
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

#include "lb/pick/snapshot_cell.hpp"
#include "lb/route/filtered_call.hpp"
#include "messages/counting/leaf_calls.hpp"
#include "messages/explanation.hpp"

namespace signalbox::lb {

/// Who calls, for the texts of failures. Either may be empty.
struct CallerNames {
  std::string target;   ///< "xds:///orders"
  std::string node_id;  ///< Empty: as the configuration's notes say.
};

/// A call as the data plane knows it. Borrowed for the duration of pick().
struct CallArgs {
  /// What routes match: "/package.Service/Method", or the path of a URL without its query.
  absl::string_view path;
  /// What header matchers and hash policies (A42) read, such as a user's id that keeps a user on
  /// one endpoint. Asked on the thread that picks, only for headers that routes name. Null: none.
  const HeaderSource* headers = nullptr;
  /// All chance of the call: weighted clusters, fractions, drops, localities, endpoints, and where
  /// no route hashes anything its place on a ring. A number of its own for each call, and the same
  /// for all picks of one attempt: equal seeds draw equally.
  std::uint64_t seed = 0;
  /// Set by each pick: the :authority that the call is to have, where its route wants the hostname
  /// of the endpoint and that has one (A81); else it is made empty. An authority that the
  /// application chose itself comes first. A string that has room for it keeps the pick free of
  /// allocations. Null: nobody asks.
  std::string* authority = nullptr;
  /// Where earlier attempts of the call went, for a retry: it passes over them where the policy
  /// does not bind the call and another endpoint is READY. Null: none.
  const TriedAddresses* tried = nullptr;
};

/// What became of a call, and the references that it holds until this is destroyed (on any
/// thread). Outlives snapshot, picker and policy. Move-only.
class Pick {
 public:
  PickOutcome outcome() const { return outcome_; }

  /// Set exactly in kComplete.
  const Connection* connection() const { return static_cast<const Connection*>(connection_.get()); }

  /// The cluster of the route; null when the call was not routed.
  const ClusterRef* cluster() const { return static_cast<const ClusterRef*>(cluster_.get()); }

  /// Below an aggregate, the leaf that takes the call; null: cluster() does, or the pick is not
  /// complete.
  const LeafCalls* leaf() const { return static_cast<const LeafCalls*>(leaf_.get()); }

  /// Where the call is counted: at the leaf that takes it (A89), else at the cluster of the route.
  /// Precondition: it was routed.
  const CallStats& stats() const { return leaf_ ? leaf()->stats() : cluster()->stats(); }

  /// The most that the call may take (A31-24 … 26); nullopt: no limit.
  std::optional<Duration> timeout() const { return timeout_; }

  /// When the call may be tried again (A44); without a retry policy, never.
  const RetryRules& retry() const { return retry_; }

  /// Why, in kFail and kDrop; never one of the codes that A54 forbids, unless a filter ended the
  /// call: that may be with any, and with OK, as if the server had answered with nothing else
  /// (A33). See Router::describe().
  const absl::Status& status() const { return status_; }

  /// How long the call is to wait before it is picked, from the pick that said so: a filter delays
  /// it (A33). It is kQueue, and publications do not concern it. 0: it need not wait, or has.
  Duration delay() const { return filtered_ == nullptr ? Duration::zero() : filtered_->delay; }

  /// When that is over, as begin_delay() was told.
  Instant due() const { return filtered_ == nullptr ? Instant() : filtered_->due; }

  /// For those who keep its time here. Precondition: delay() > 0.
  void begin_delay(Instant now) { filtered_->due = now + filtered_->delay; }

  /// It has waited: repick() goes on with it.
  void end_delay() {
    if (filtered_ == nullptr) return;
    filtered_->delay = Duration::zero();
    filtered_->holds.clear();
  }

  /// What filters want sent beside the call's own headers; empty from the second time on.
  AddedHeaders take_headers() {
    return filtered_ == nullptr ? AddedHeaders() : std::exchange(filtered_->headers, {});
  }

  /// What the response is to have in "set-cookie" (A55): in its headers, or in the trailers where
  /// it has only these. Empty: nothing; so it is unless the pick is complete. Changed by repick()
  /// and put_off().
  const std::string& set_cookie() const;

  /// The call ended: tells those who count it, once. A call that never reached its endpoint does
  /// not say so; its Pick is only destroyed.
  void end(int code) {
    tracking_.end({code});
    if (session_ != nullptr) session_->reached();
  }

  /// The connection has gone before it was used, or another attempt follows: the call waits, and
  /// holds nothing but its cluster.
  void put_off() {
    if (outcome_ != PickOutcome::kComplete) return;
    outcome_ = PickOutcome::kQueue;
    connection_ = Use();
    leaf_ = Use();
    tracking_ = Tracking();
    if (session_ != nullptr) session_->forget();
  }

  /// Which publication this pick saw: look again when the cell has a later one.
  std::uint64_t sequence() const { return sequence_; }

 private:
  friend class Router;

  /// What is told of a pick beside its outcome. Valid as long as the picker is.
  struct Answer {
    Affinity affinity = {};
    const LeafCalls* leaf = nullptr;
  };

  // The steps of a pick that begins as queued, and empty but for its cluster.
  // Writes the endpoint's hostname, if it has one, where `authority` is not null.
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
  bool auto_host_rewrite_ = false;  // Once routed it stays, as the cluster does.
  Use cluster_;
  Use connection_;
  Use leaf_;
  Tracking tracking_;
  std::optional<Duration> timeout_;
  // Once routed they stay, as the cluster does.
  std::optional<std::uint64_t> hash_;
  RetryRules retry_;
  std::unique_ptr<Filtered> filtered_;  // What filters said; null: nothing.
  SessionPtr session_;                  // Null: it is of none.
  absl::Status status_;
  std::uint64_t sequence_ = 0;
};

class Router {
 public:
  /// Of what a policy, a resolver or a peer says of a failure, texts keep so many bytes; what
  /// describe() adds to it comes on top.
  static constexpr std::size_t kLongestReason = 4096;

  /// `sessions`: of the target; null: cookies are plain, time stands still, and nobody is told.
  explicit Router(std::shared_ptr<const SnapshotCell> cell,
                  CallerNames names = {},
                  SessionsPtr sessions = nullptr);

  /// The first pick of a call: kFail becomes a failure, or waits if the call is wait_for_ready;
  /// kQueue waits for a later publication, then repick().
  [[gnu::hot]] Pick pick(const CallArgs& call) const;

  /// Asks again for a call that waits, or is retried. Once routed, cluster, timeout, hash and retry
  /// policy stay as they were (A31-1, A31-10, A42), and so does its session (A55-37); its filters
  /// are not asked again; a call that found no configuration is routed now. Changes nothing while
  /// the call is delayed.
  [[gnu::hot]] void repick(Pick& pick, const CallArgs& call) const;

  /// `why` in the form of all failures: it says the target and the cluster first, and in brackets
  /// at its end the node's id, and what is wrong with the configuration where that may be why the
  /// call found nobody (A88: UNAVAILABLE, DEADLINE_EXCEEDED). Statuses of picks have it already.
  absl::Status describe(const absl::Status& why, const ClusterRef* cluster = nullptr) const;

  /// What pick() would answer now, and why: each decision, its reason, and which resource or option
  /// it is set by. Where a filter delays the call, it goes on as after the delay. Takes no lock;
  /// allocates. Leaves no trace: nothing is counted, asked for or marked, no turn is taken, and
  /// connections and clusters are held no longer than it runs. It cannot promise that for filters
  /// and pickers of the program's own that have no explain(). `now`: for what runs.
  Explanation explain(const CallArgs& call, Instant now, Turns turns = Turns::kAsTheyAre) const;

  /// The publication that a reader would see now.
  std::uint64_t sequence() const;

 private:
  /// repick(), but for what is told when the read section has ended.
  template <typename Sink>
  [[gnu::hot]] void look(Pick& pick, const CallArgs& call, const Sink& sink) const;

  /// What is known of a call of a session before its route is.
  struct Foresight {
    std::optional<FoundCookie> cookie;  ///< By the snapshot's name; nullopt: not looked for.
    CookieKey key{};                    ///< Of that, if there is one.
    const Seat* seat = nullptr;         ///< Where it leads as a rule; null: nobody knows.
  };

  /// Precondition: there are seats and headers.
  [[gnu::hot]] static Foresight foresee(const Snapshot& snapshot, const CallArgs& call);

  /// What stateful_session does, for a call whose cookie has been found.
  [[gnu::hot]] void begin_session(const StatefulSession& filter,
                                  absl::string_view path,
                                  const Foresight& foresight,
                                  Pick& pick) const;

  [[gnu::hot]] SessionArgs wish_of(Session& session, const Seat* seat) const;
  [[gnu::hot]] void settle(Session& session,
                           const Affinity& affinity,
                           PickOutcome outcome,
                           const ClusterRef& cluster,
                           const CallStats& stats) const;

  /// Chooses the cluster, and asks the filters. Without one it cannot, and `pick` says why.
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
