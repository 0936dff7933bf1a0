// SPDX-License-Identifier: Apache-2.0
//
// subchannel_map_core — the single owner of *who holds what* below one leaf cluster.
//
//   policies ─ acquire, release, settle ─▶ [subchannel_map_core] ─ spawn, stop, connect ──▶│
//            ◀──────────── NotifyHolder ◀─                       ◀─ SubchannelStateChanged ─│
//   outlier_detection ─ EndpointHealthChanged ─▶                                subchannels ┘
//                                                   ─ start, stop ─▶ health checkers
//                                                   ◀─ HealthChecked
//
// A holder is a policy, known by its path; its incarnation rises when its actor restarts. A hold
// is *live*, or *orphaned* when the incarnation that took it is gone: then it keeps the subchannel
// but is told nothing, until the successor takes it again or has settled without it.
//
// Invariants
//   I1  An entry lives while its set of holds is not empty, as it stands at the *end of a step*;
//       after that only while it lingers (I3). Hence a release that the same step turns into
//       another holder's hold never lets the connection see zero holders (A75-34, A75-35).
//   I2  Per path an entry has at most one hold: acquiring and releasing are idempotent, and what
//       an incarnation older than the newest says is dropped.
//   I3  An entry without holds lingers while the generation in which it lost the last one is
//       being applied; it is stopped when that has been applied everywhere, or at once if none
//       is (an endpoint that moves between priorities keeps its connection).
//   I4  Orphaned holds end when the successor settles, or when a generation later than the one of
//       the death has been applied.
//   I5  Every change is told to all live holds in the order of their paths, and every acquisition
//       is answered by the present state.
//   I6  Health changes what is told, never a connection (A61). An endpoint is healthy while no
//       judge finds it unfit; none of them undoes what another one found.
//   I7  A connection is secured as the newest settings say: when these change, every subchannel is
//       replaced by an IDLE one, and calls on the old connections run to their end.       (A29)
//   I8  An attempt may be followed by another one soon while fewer than kMostInHurry other
//       addresses have none that succeeded: what it costs does not grow with what is lost.
//   I9  One holder may keep sessions, by a table of addresses (KeepSessions). It is told of each of
//       these, first of all, whoever holds it. It holds an address of the table, and nothing else,
//       only while nobody else does (A75-25): its hold begins in the step in which the last other
//       one ends, if a session used the address within the idle timeout (A75-34), or with its own
//       acquisition (A75-37); it ends in the step in which another holder acquires (A75-35), with
//       the address's place in the table (A75-36), or with a sweep (A75-29). When the keeper dies,
//       that goes on in the name of its successor.
//   I10 While an address has a subchannel it is probed, if the newest settings say so and do not
//       exempt it. What its probes made of it stays until they, or those that take their place,
//       say something else, and ends when it is not probed any more.
//
// Precondition: the shell passes on what the *present* subchannel of an address says, not what a
// stopped one of the same address had still under way.

#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

class SubchannelMapCore {
 public:
  /// See I7.
  static constexpr std::int64_t kMostInHurry = 64;

  SubchannelMapEffects step(const SubchannelMapEvent& event, Instant now);

  /// Throws BrokenInvariant unless all of the above hold. O(n): for tests and the simulator.
  void check_invariants() const;

  /// How many subchannels there are.
  std::size_t size() const { return entries_.size(); }

  /// How many paths it knows a holder of, present or recently gone.
  std::size_t remembered_holders() const { return parties_.size(); }

 private:
  /// What is known of one path. Kept for a while after the holder is gone, so that what it sent
  /// before is recognised as late.
  struct Party {
    PolicyPath path;
    std::uint64_t incarnation = 0;  ///< The newest heard of.
    bool present = true;            ///< That one has not gone.
    Generation gone_in = 0;         ///< The generation in which the last incarnation went.
    std::set<Address> live;         ///< Held by the newest incarnation.
    std::set<Address> orphaned;     ///< Held by earlier ones, or by one that died.
  };

  struct Entry {
    SubchannelStateChanged raw;            ///< As the subchannel told last.
    std::vector<Party*> holds;             ///< In order of path.
    std::optional<Generation> lingers_in;  ///< Set exactly while there are no holds.
    EndpointState counted = EndpointState::kIdle;
    bool is_probed = false;
    absl::Status probed;  ///< What came of it (I10); OK while nothing has.
  };

  using Entries = absl::flat_hash_map<Address, Entry>;

  /// I9.
  struct Keeper {
    Party* party = nullptr;
    std::uint64_t incarnation = 0;  ///< That gave the order.
    Duration idle_timeout{};
    SessionMarksPtr marks;  ///< Never null.
  };

  void on(const SubchannelAcquired& event, SubchannelMapEffects& effects);
  void on(const SubchannelReleased& event, SubchannelMapEffects& effects);
  void on(const SubchannelConnectAsked& event, SubchannelMapEffects& effects);
  void on(const HolderSettled& event, SubchannelMapEffects& effects);
  void on(const HolderGone& event, SubchannelMapEffects& effects);
  void on(const MapGenerationStarted& event, SubchannelMapEffects& effects);
  void on(const MapGenerationApplied& event, SubchannelMapEffects& effects);
  void on(const EndpointHealthChanged& event, SubchannelMapEffects& effects);
  void on(const EndpointsTracked& event, SubchannelMapEffects& effects);
  void on(const SessionsKept& event, SubchannelMapEffects& effects);
  void on(const SweepAsked& event, SubchannelMapEffects& effects);
  void on(const HealthChecked& event, SubchannelMapEffects& effects);

  bool is_keeper(const Party& party) const { return keeper_ && keeper_->party == &party; }

  void dismiss_keeper(SubchannelMapEffects& effects);
  void tell_keeper(const SessionMarks* known, SubchannelMapEffects& effects) const;
  void tell_keeper_of(const Address& address, SubchannelMapEffects& effects) const;
  void end_hold(const Address& address, Party& party);
  void end_holds(Party& party, absl::FunctionRef<bool(const Address&)> is_over);
  const SessionHost* session_host(const Address& address) const;
  bool is_in_use(const SessionHost& host) const;
  bool take_for_sessions(const Address& address);
  void on(const SubchannelStateChanged& event, SubchannelMapEffects& effects);

  Party* meet(const Holder& holder);
  void orphan_all(Party& party);
  void release_orphans(Party& party);
  void unhold(const Address& address, const Party& party);
  void forget_departed(SubchannelMapEffects& effects);
  void retire_unheld(SubchannelMapEffects& effects);
  void stop(const Address& address, SubchannelMapEffects& effects);
  std::vector<Address> addresses() const;
  void replace_all(SubchannelMapEffects& effects);
  void probe_anew(const SubchannelSettings& before, SubchannelMapEffects& effects);
  void begin_probes(const Address& address, Entry& entry, SubchannelMapEffects& effects) const;

  void notify(const Address& address, const Entry& entry, SubchannelMapEffects& effects) const;
  SubchannelStateChanged told(const Address& address, const Entry& entry) const;
  const absl::Status* verdict_of(HealthJudge judge,
                                 const Address& address,
                                 const Entry& entry) const;
  const absl::Status* verdict_on(const Address& address, const Entry& entry) const;
  void recount(const Address& address, Entry& entry);
  void recount_all(const SessionMarks& marks);
  EndpointState state_of(const Address& address, const Entry& entry) const;
  std::int64_t held_for_sessions() const;
  void observe_counts(SubchannelMapEffects& effects);
  void check_keeper() const;

  Instant now_{};  ///< Of the step.
  SubchannelSettings settings_;
  Generation started_ = 0;
  Generation applied_ = 0;
  Entries entries_;
  std::map<PolicyPath, Party> parties_;
  /// Entries that lost their last hold in this step; their fate is decided at its end (I1).
  std::vector<Address> unheld_;
  std::set<std::pair<Generation, Address>> lingering_;
  /// By judge, as told last. Outlive entries: a judge also says when an endpoint is well again.
  std::array<std::shared_ptr<const UnhealthyEndpoints>, kHealthJudges> unhealthy_;
  std::shared_ptr<const TrackEndpoints::Table> trackers_;
  std::array<std::int64_t, kEndpointStates> counts_{};
  std::optional<EndpointsCounted> observed_;
  std::optional<Keeper> keeper_;
  std::int64_t held_observed_ = 0;  ///< By the keeper, as told last.
};

}  // namespace signalbox::lb
