// SPDX-License-Identifier: Apache-2.0
//
// EndpointSet — the endpoints of a leaf policy, each with a PickFirst of its own (gRFC A61).
//
//   update, observe, connect ─▶ [EndpointSet: one PickFirst per endpoint] ─▶ Acquire-,
//                                     │                                      ReleaseSubchannel,
//                                     │                                      Connect
//                                     └▶ members, their states, take_changes(), ready()
//
// An endpoint is identified by its set of addresses. Each endpoint in Priority::localities, of all
// priorities of the policy's list, is a member, in the order of the configuration. An endpoint that
// the list has twice is a member once, at its first place.
//
// Invariants
//   I1  An endpoint that stays in the list keeps its PickFirst, and so its connection.
//   I2  The cost of an event does not grow with the number of endpoints, unless they share an
//       address (I4). A new list costs O(endpoints). For a locality that is the same object as
//       before, that is usually only a copy of pointers.
//   I3  An endpoint that a judge (outlier detection, health checks) finds unfit is not READY, but
//       keeps its connection (A61). Exception: when a priority is in panic, leaf_tiers marks all
//       endpoints of the list UNHEALTHY, even those that EDS calls healthy. They are then used
//       whatever the judges find (ENV-17).
//   I4  Endpoints with a common address share one hold on that address (see SubchannelMapCore). If
//       k endpoints share it, adding or removing one costs O(log k), and a report of the address
//       costs O(k).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "lb/leaf/pick_first_core.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// The READY endpoints, for a picker. Movable: a move does not move the elements, so pointers to
/// them stay valid.
class ReadyEndpoints {
 public:
  ReadyEndpoints() = default;
  ReadyEndpoints(ReadyEndpoints&&) = default;
  ReadyEndpoints& operator=(ReadyEndpoints&&) = default;

  std::size_t size() const { return completes_.size(); }

  /// A complete result for the READY endpoint `at`. It points to data that lives as long as this
  /// object.
  const Complete& operator[](std::size_t at) const { return completes_[at]; }

 private:
  friend class EndpointSet;

  std::vector<Complete> completes_;     // The only vector that most picks read.
  std::vector<ChosenEndpoint> chosen_;  // One for each of completes_.
  std::vector<ConnectionPtr> owners_;   // One for each of completes_.
};

/// The first READY endpoint, beginning at `at` and going round, to which the call has not been sent
/// yet. Returns `at` if the call has been sent to all READY endpoints.
inline std::size_t first_untried(const ReadyEndpoints& ready,
                                 const PickArgs& args,
                                 std::size_t at) {
  for (std::size_t step = 0; step < ready.size(); ++step) {
    const std::size_t next = (at + step) % ready.size();
    if (!was_tried(args, *ready[next].connection)) return next;
  }
  return at;
}

/// An endpoint that gets no calls, and the reason, for explanations.
struct AbsentEndpoint {
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< Points into `locality`.
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;  ///< The reason of TRANSIENT_FAILURE; else OK.
};

class EndpointSet {
 public:
  /// When attempts to connect an endpoint begin; they go on until one succeeds. kAtOnce: when the
  /// endpoint becomes a member, and whenever its connection is lost. kWhenAsked: when connect() is
  /// called; until then, and after a lost connection, the endpoint is IDLE.
  enum class Connects : std::uint8_t { kAtOnce, kWhenAsked };

  /// Makes the tracker of one endpoint's calls, for a policy that counts calls in flight
  /// (least_request) or reads load reports (weighted_round_robin).
  using MakeCounter = std::function<CallTrackerPtr()>;

  struct Member {
    LocalityPtr locality;
    const Endpoint* endpoint = nullptr;  ///< Points into `locality`.
    ConnectivityState state = ConnectivityState::kIdle;
    ConnectionPtr connection;  ///< Null unless the state is READY.
    Instant ready_since{};     ///< When the state became READY last; see set_time().
    CallTrackerPtr tracker;    ///< The subchannel map reports it with the connection.
    CallTrackerPtr counter;    ///< Made by MakeCounter, or later by replace_counters().
    /// False: the endpoint is left out of pickers and states; see let_count().
    bool counts = true;
  };

  /// The changes since the last take_changes(). Changes of a member that does not count
  /// (let_count()) may set `ready` and `stale` too.
  struct Changes {
    bool list = false;    ///< Members came or went, or their order or configuration changed.
    bool states = false;  ///< A member that counts has another state.
    /// The set of READY members that count, or data of one of them that a pick reads, has changed.
    bool ready = false;
    /// The last picker is wrong about a READY member: the member is no longer READY or no longer a
    /// member, or its connection, configuration or tracker was replaced.
    bool stale = false;
    bool failure = false;  ///< last_failure() returns another status.
    /// A PickFirst requests re-resolution: it failed at all its addresses, or lost its connection.
    bool unreachable = false;
  };

  /// Whether a member in TRANSIENT_FAILURE counts as fit in the health counts.
  enum class Unreachable : std::uint8_t { kUnfit, kFit };

  /// `caller`: see PolicyOptions::caller.
  explicit EndpointSet(Connects connects,
                       Duration attempt_delay = kAttemptDelay,
                       MakeCounter make_counter = nullptr,
                       Unreachable unreachable = Unreachable::kUnfit,
                       LocalityName caller = {});

  /// Sets the time of the events that follow.
  void set_time(Instant now) { now_ = now; }

  /// Replaces the list of endpoints; null: none.
  void update(const EndpointsPtr& slice, LbEffects& effects);

  /// Takes a report of a subchannel. A report of an address that is not held is ignored.
  void observe(const SubchannelStateChanged& event, LbEffects& effects);

  /// Takes a fired timer of a PickFirst.
  void fire(const TimerId& timer, LbEffects& effects);

  /// Begins to connect to a member, if it is IDLE.
  void connect(std::size_t member, LbEffects& effects);

  /// Connects the member that has `first` as its first address, if there is one. Must be called
  /// only on a set that was made with kWhenAsked.
  void connect(const Address& first, LbEffects& effects);

  std::size_t size() const { return order_.size(); }

  const Member& operator[](std::size_t member) const { return *order_[member]; }

  /// Sets whether a member counts. A policy lets an endpoint not count if its picks can never reach
  /// the endpoint (for example, it has no point on the ring). Members that do not count are left
  /// out of count(), counted(), ready(), absent() and last_failure(). Initially all count. The
  /// caller must publish a new picker.
  void let_count(std::size_t member, bool counts);

  /// Replaces the `counter` of each member by the result of `replace`. The caller must publish a
  /// new picker.
  void replace_counters(absl::FunctionRef<CallTrackerPtr(const CallTrackerPtr&)> replace);

  /// How many members count, that is, can be reached by picks (let_count()).
  std::size_t counted() const { return std::accumulate(counts_.begin(), counts_.end(), 0UL); }

  /// How many members count (let_count()) and are in this state.
  std::size_t count(ConnectivityState state) const {
    return counts_[static_cast<std::size_t>(state)];
  }

  /// The latest time at which any member became READY. Meaningless while no member is READY.
  Instant last_ready() const { return last_ready_; }

  /// How many members are fit for calls (host_count.hpp defines fit), and how many members there
  /// are, for the HostReport. Both include members that do not count for picks (let_count()).
  const HostTally& fit() const { return fit_; }

  const HostTally& all() const { return all_; }

  /// Whether every held address has reported a state.
  bool heard_all() const { return unheard_ == 0; }

  /// The status of the member that failed last, of those that count (let_count()). If that member
  /// has recovered, is gone, or no longer counts: the status of the first that has failed. OK: none
  /// has.
  absl::Status last_failure() const;

  /// The READY members that count (let_count()), in the order of the configuration.
  ReadyEndpoints ready() const;

  /// The `counter` of each endpoint of ready(), in the same order.
  std::vector<CallTrackerPtr> ready_counters() const;

  /// The first `most` of the members that count (let_count()) and are not READY.
  std::vector<AbsentEndpoint> absent(std::size_t most) const;

  Changes take_changes() { return std::exchange(changes_, {}); }

 private:
  struct Entry : Member {
    std::optional<PickFirst> first;  // Unset: connect() was never called for this endpoint.
    std::uint64_t number = 0;        // How many endpoints became members before this one.
    bool heard_all = true;           // Every held address of the endpoint has reported a state.
    std::uint64_t named_in = 0;      // The number (list_) of the newest list that has the endpoint.
    HostTally tallied;               // The part of all_ that is this endpoint.
    bool fit = false;                // Whether `tallied` is added to fit_ too.
  };

  // The endpoints that share an address, in the order in which they became members. Usually it is
  // one.
  using Users = absl::InlinedVector<Entry*, 1>;

  // A held address: the endpoints that share it, and its subchannel's newest report.
  struct Held {
    Users users;
    std::optional<SubchannelStateChanged> last;
  };

  // The positions in order_ of one locality's members. A locality has a Span only if all of its
  // endpoints are in order_, one directly after the other.
  struct Span {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  struct Place;

  Entry& entry_of(const Endpoint& endpoint);
  void take_in(const LocalityPtr& locality, Place& place, LbEffects& effects);
  void take_in(const LocalityPtr& locality,
               const Endpoint& endpoint,
               Place& place,
               LbEffects& effects);
  bool adopt(Entry& entry,
             const LocalityPtr& locality,
             const Endpoint& endpoint,
             LbEffects& effects);
  void let_go(Entry& entry, LbEffects& effects);
  void connect(Entry& entry, LbEffects& effects);
  void forget_first(const Address& address, const Entry& entry);
  void drive(Entry& entry, LbEffects& effects, absl::FunctionRef<void(LbEffects&)> action);
  void hear(Entry& entry, const SubchannelStateChanged& event, LbEffects& effects);
  bool drop_user(const Address& address, Entry& entry);
  void recount(Entry& entry);
  static bool has_failed(const Entry& entry);
  void take_failure(const Entry& entry);
  void forget_failure(const Entry& entry);
  bool is_fit(const Entry& entry) const;
  void tally(Entry& entry);
  void tally_no_more(Entry& entry);

  Connects connects_;
  Duration attempt_delay_;
  MakeCounter make_counter_;
  Unreachable unreachable_;
  LocalityName caller_;
  Instant now_{};
  Instant last_ready_{};
  std::uint64_t list_ = 0;     // The number of updates so far.
  std::uint64_t members_ = 0;  // The number of endpoints that have become members so far.
  absl::flat_hash_map<Address, std::unique_ptr<Entry>> entries_;  // By key_of() the endpoint.
  std::vector<Entry*> order_;                                     // In the configured order.
  absl::flat_hash_map<LocalityPtr, Span> spans_;
  absl::node_hash_map<Address, Held> held_;
  absl::flat_hash_map<Address, Entry*> by_first_;  // By first address; for kWhenAsked.
  std::array<std::size_t, 4> counts_{};            // Members that count (let_count()), by state.
  std::size_t unheard_ = 0;  // Members with a held address that has not reported.
  HostTally fit_;
  HostTally all_;
  const Entry* failed_last_ = nullptr;  // Null: no member, or last_failure() finds one.
  absl::Status last_failure_;           // Of failed_last_; OK if that is null.
  Changes changes_;
};

}  // namespace signalbox::lb
