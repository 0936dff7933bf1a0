// SPDX-License-Identifier: Apache-2.0
//
// Router — finds the endpoint of one call: matches its route, runs its filters, asks the picker.
// Reads one snapshot.
//
//   data plane ─▶ Router::pick ─▶ Pick (a receipt: keep it while the call runs)
//                 Router::repick ◀─ queued, after the snapshot changed: cluster and timeout stay
//                                ◀─ delayed, after end_delay()
//            ─▶ Router::explain ─▶ Explanation: the same, step by step, and nothing is done
//
// The response to a call with a session (A55) may have to set a cookie: Pick::set_cookie().
//
// Thread-safe. A pick takes no lock, except liburcu's at the first pick of a thread, and perhaps
// OpenSSL's to seal a cookie and the actor scheduler's to send an ask. Filters and pickers of the
// program's own may take others. A complete pick usually allocates nothing. It may allocate when a
// filter changes the call, when a header is joined, rewritten or matched by a regular expression,
// or for the cookie of a session. The pick of a routed call is counted in the CallStats of the
// aggregate's leaf that the picker names (PickResult::leaf), else in those of the route's cluster.
// A pick that waits or fails may name a leaf, too. The router sends the asks of pickers (such as
// "connect this address"), and never waits for an answer.
//
// The texts of all failures have one form, in which nothing is said twice:
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

/// The names that the texts of failures contain. Either may be empty.
struct CallerNames {
  std::string target;   ///< "xds:///orders"
  std::string node_id;  ///< Empty: the configuration's ResolutionNotes have it.
};

/// A call as the data plane knows it. Borrowed for the duration of pick().
struct CallArgs {
  /// The text that routes match: "/package.Service/Method", or the path of a URL without its query.
  absl::string_view path;
  /// The call's headers. Only headers that routes (A31, A42), filters and policies name are read,
  /// on the thread that picks. Null: the call has none.
  const HeaderSource* headers = nullptr;
  /// All random choices of the call are computed from this number: weighted clusters, fractions,
  /// faults, drops, tiers, localities, endpoints, and a hash when the call has none. Give each
  /// attempt of each call another number, and all picks of one attempt the same one.
  std::uint64_t seed = 0;
  /// Receives the hostname of the picked endpoint, when the route has auto_host_rewrite and the
  /// endpoint has a hostname (A81); otherwise the pick makes the string empty. The caller sends the
  /// hostname as :authority, unless the application has set an authority for this call. The pick
  /// allocates no memory if the string has the capacity for the hostname. Null: not wanted.
  std::string* authority = nullptr;
  /// The addresses of the call's earlier attempts. A retry avoids them when another endpoint of its
  /// priority is READY, unless a session, pick_first, ring_hash, maglev or a custom policy chooses
  /// the endpoint. Null: none.
  const TriedAddresses* tried = nullptr;
};

/// The result of a call's pick. Holds references to the call's cluster and connection until it is
/// destroyed (on any thread); put_off() releases the connection earlier. May outlive snapshot,
/// picker and policy. Move-only.
class Pick {
 public:
  PickOutcome outcome() const { return outcome_; }

  /// Null unless the outcome is kComplete.
  const Connection* connection() const { return static_cast<const Connection*>(connection_.get()); }

  /// The route's cluster; null: the call was not routed.
  const ClusterRef* cluster() const { return static_cast<const ClusterRef*>(cluster_.get()); }

  /// The leaf cluster that takes the call, when cluster() is an aggregate. Null: cluster() takes
  /// the call itself, or the pick is not complete.
  const LeafCalls* leaf() const { return static_cast<const LeafCalls*>(leaf_.get()); }

  /// The counters of the call: those of the leaf that takes it (A89), else of the route's cluster.
  /// Null: calls are not counted. Precondition: the call was routed.
  const CallStats* stats() const { return leaf_ ? leaf()->stats() : cluster()->stats(); }

  /// The longest time that the call may take by its route (A31-24 … 26), without the application's
  /// own deadline; nullopt: no limit.
  std::optional<Duration> timeout() const {
    return has_timeout_ ? std::optional(timeout_) : std::nullopt;
  }

  /// Which failures of the call are retried (A44). Without a retry policy: none.
  const RetryRules& retry() const { return retry_; }

  /// Why the call failed, in kFail and kDrop. It has no code that A54 forbids to the control plane,
  /// unless a filter chose the code. OK in kDrop: a filter ended the call successfully, without a
  /// response message (A33). See Router::describe().
  const absl::Status& status() const { return status_; }

  /// The priority for which the call waits, or that made it fail. nullopt: the pick is complete, no
  /// priority policy was asked, or the priority that it has chosen is READY.
  std::optional<std::uint8_t> priority() const {
    const bool is_known =
        outcome_ != PickOutcome::kComplete && priority_ != PickResult::kNoPriority;
    return is_known ? std::optional(priority_) : std::nullopt;
  }

  /// How long filters delay the call, in all (A33). Until end_delay() the outcome is kQueue, and
  /// new snapshots do not wake the call. 0: there is no delay, or it is over.
  Duration delay() const { return filtered_ == nullptr ? Duration::zero() : filtered_->delay; }

  /// The end of the delay, set by begin_delay().
  Instant due() const { return filtered_ == nullptr ? Instant() : filtered_->due; }

  /// Sets due() to `now` plus the delay. Precondition: delay() > 0.
  void begin_delay(Instant now) { filtered_->due = now + filtered_->delay; }

  /// Ends the delay. Call repick() afterwards.
  void end_delay() {
    if (filtered_ == nullptr) return;
    filtered_->delay = Duration::zero();
    filtered_->holds.clear();
  }

  /// The headers that filters add to the call's own. A second call returns none.
  AddedHeaders take_headers() {
    return filtered_ == nullptr ? AddedHeaders() : std::exchange(filtered_->headers, {});
  }

  /// The value of "set-cookie" for the response (A55): in its initial metadata, or in the trailers
  /// of a trailers-only response. Empty: none, and always empty unless the pick is complete.
  /// repick() and put_off() may change it.
  const std::string& set_cookie() const;

  /// Must be called once when an attempt that reached its endpoint has ended. For an attempt that
  /// never reached it, call put_off() or destroy the Pick instead. Tells the policies' trackers and
  /// the call's session. `load`: the load report that came with the response at `now`; null: none.
  void end(int code, const LoadReport* load = nullptr, Instant now = {}) {
    tracking_.end({code, load, now});
    if (session_ != nullptr) session_->reached();
  }

  /// Whether a policy wants the endpoint's load report. False once the call has ended.
  bool wants_load() const { return tracking_.wants_load(); }

  /// Moves a complete pick to `connection`, another connection to the same endpoint, of which the
  /// call has taken a stream. `lane` counts the stream: its ended() is called when the call's
  /// attempt ends or is put off. See lb/pick/stream_lanes.
  void take_stream(const Connection& connection, const CallTracker& lane) {
    // The old connection may own the lane, so the lane gets its use first.
    tracking_.add(lane);
    connection_ = Use(connection);
    has_stream_ = true;
  }

  /// Whether the complete pick has taken a stream.
  bool has_stream() const { return has_stream_; }

  /// Gives up the endpoint of a complete pick: releases its connection, leaf and trackers, drops
  /// its Set-Cookie, and makes the outcome kQueue. Call it when the connection was lost before the
  /// call used it, or before another attempt. Does nothing to a pick that is not complete.
  void put_off() {
    if (outcome_ != PickOutcome::kComplete) return;
    outcome_ = PickOutcome::kQueue;
    is_put_off_ = true;
    // As at the end of a call, the stream goes first: its lane expects that the call still uses the
    // connection.
    tracking_ = Tracking();
    has_stream_ = false;
    connection_ = Use();
    leaf_ = Use();
    if (session_ != nullptr) session_->forget();
  }

  /// Whether put_off() has given up the endpoint, and the call has not picked again.
  bool is_put_off() const { return is_put_off_; }

  /// The number of the snapshot that this pick read. A waiting call picks again when the cell has a
  /// snapshot with a higher number.
  std::uint64_t sequence() const { return sequence_; }

 private:
  friend class Router;

  /// The part of the picker's answer that ask() returns; ask() writes the rest into the Pick. Valid
  /// as long as the picker is.
  struct Answer {
    Affinity affinity = {};
    const LeafCalls* leaf = nullptr;
    CallZone zone = CallZone::kUnknown;  // That of a complete pick's endpoint.
  };

  // The following functions are the steps of a pick. Precondition: the outcome is kQueue, and the
  // Pick has no connection, leaf or trackers. ask() writes the endpoint's hostname to `authority`,
  // unless `authority` is null or the endpoint has no hostname.
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

  std::optional<std::uint64_t> hash() const {
    return has_hash_ ? std::optional(hash_) : std::nullopt;
  }

  PickOutcome outcome_ = PickOutcome::kQueue;
  bool auto_host_rewrite_ = false;  // Set when the call is routed, not by later picks.
  bool has_stream_ = false;
  bool is_put_off_ = false;
  bool has_timeout_ = false;  // The flags of two values below are here, where they take no room.
  bool has_hash_ = false;
  std::uint8_t priority_ = PickResult::kNoPriority;  // See priority().
  Use cluster_;
  Use connection_;
  Use leaf_;
  Tracking tracking_;
  Duration timeout_{};
  // Set when the call is routed, not by later picks.
  std::uint64_t hash_ = 0;
  RetryRules retry_;
  std::unique_ptr<Filtered> filtered_;  // The decisions of filters; null: none.
  SessionPtr session_;                  // Null: the call has none.
  absl::Status status_;
  std::uint64_t sequence_ = 0;
};

class Router {
 public:
  /// The most bytes of a reason (from a policy, a resolver or a peer) that an error text keeps.
  /// Text that describe() adds does not count.
  static constexpr std::size_t kLongestReason = 4096;

  /// `sessions`: the settings for session cookies of this target. Null: cookies are not sealed,
  /// there are no warnings, and sessions have no clock.
  explicit Router(std::shared_ptr<const SnapshotCell> cell,
                  CallerNames names = {},
                  SessionsPtr sessions = nullptr);

  /// The first pick of a call. If the outcome is kFail, the call fails, or waits if it is
  /// wait_for_ready. In kQueue it waits. A call that waits calls repick() after the next snapshot
  /// was published or, if a filter delays it, after end_delay().
  [[gnu::hot]] Pick pick(const CallArgs& call) const;

  /// Picks again for a call that waits or is retried. A call that was routed before keeps its
  /// cluster, timeout, hash and retry policy (A31-1, A31-10, A42) and its session (A55-37), and its
  /// filters do not run again. A call that found no configuration before is routed now. Does
  /// nothing while a filter delays the call.
  [[gnu::hot]] void repick(Pick& pick, const CallArgs& call) const;

  /// Gives `why` the form that all failures have: target and cluster first, and the node's id last,
  /// in brackets. For UNAVAILABLE and DEADLINE_EXCEEDED, errors in the configuration may be the
  /// cause, so they are named before the id (A88). The statuses of picks have this form already.
  absl::Status describe(const absl::Status& why, const ClusterRef* cluster = nullptr) const;

  /// The answer that pick() would give now, with each decision, its reason, and the resource or
  /// option that sets it. If a filter delays the call, the pick goes on as if the delay were over.
  /// Takes a lock only where pick() does; allocates. Has no side effects: it counts nothing, sends
  /// no ask, and advances no round-robin position. It holds connections and clusters only while it
  /// runs. Filters and pickers of the program's own that do not override explain() may have side
  /// effects. `now`: for durations in the steps.
  Explanation explain(const CallArgs& call, Instant now, Turns turns = Turns::kAsTheyAre) const;

  /// The number of the newest snapshot; see Pick::sequence().
  std::uint64_t sequence() const;

 private:
  /// Does the work of pick(), repick() and explain(). Only warnings about cookies are left to
  /// repick(), which gives them after the snapshot's read section, because they may be slow.
  template <typename Sink>
  [[gnu::hot]] void look(Pick& pick, const CallArgs& call, const Sink& sink) const;

  /// Matches the call's route, and runs its filters. Returns no cluster if the call cannot be
  /// routed; `pick` then has the reason, or waits for a configuration.
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
