// SPDX-License-Identifier: Apache-2.0
//
// subchannel_map_core — the one place that knows the holders of all addresses below a leaf cluster.
//
//   policies ─ acquire, release, settle ─▶ [subchannel_map_core] ─ spawn, stop, connect ──▶│
//            ◀──────────── NotifyHolder ◀─                       ◀─ SubchannelStateChanged ─│
//   outlier_detection ─ EndpointHealthChanged ─▶                                subchannels ┘
//                                                   ─ start, stop ─▶ health checkers
//                                                   ◀─ HealthChecked
//
// A holder is a policy, known by its path; its incarnation rises when its actor restarts. A hold is
// *live*, or *orphaned* when the incarnation that took it is gone. An orphaned hold keeps the
// subchannel but is told nothing, until the successor takes it again or has settled without it.
//
// Invariants
//   I1  An entry lives while it has holds at the *end of a step*; without holds it lives only while
//       it lingers (I3). Hence a release that the same step turns into another holder's hold never
//       lets the connection see zero holders (A75-34, A75-35).
//   I2  An entry has at most one hold per path: acquiring and releasing are idempotent. Events of
//       an incarnation older than the newest are dropped.
//   I3  An entry without holds lingers while the generation in which it lost its last hold is being
//       applied. It is stopped when that generation has been applied everywhere, or at once if none
//       is being applied. So an endpoint that moves between priorities keeps its connection.
//   I4  Orphaned holds end when the successor settles, or when a generation later than the one of
//       the death has been applied.
//   I5  Every change is told to all live holds in the order of their paths. Every acquisition is
//       answered with the present state.
//   I6  Health changes the reports, never a connection (A61). An endpoint is healthy while no judge
//       finds it unfit; no judge undoes another judge's finding.
//   I7  A connection is secured as the newest settings say. When these change, every subchannel is
//       replaced by an IDLE one, and calls on the old connections run to their end. (A29)
//   I8  An attempt may hurry (ConnectRequested::may_hurry) while fewer than kMostInHurry addresses
//       are CONNECTING or in TRANSIENT_FAILURE. So the cost of hurry does not grow with the number
//       of lost addresses.
//   I9  One holder may keep sessions, by a table of addresses (KeepSessions). It is told the state
//       of each of these addresses, before the other holders and whichever they are. It holds only
//       addresses of the table, and only while no other holder does (A75-25). Its hold begins in
//       the step in which the last other hold ends, if a session used the address within the idle
//       timeout (A75-34), or with its own acquisition (A75-37). The hold ends in the step in which
//       another holder acquires (A75-35), with the address's place in the table (A75-36), or with a
//       sweep (A75-29). When the keeper dies, this goes on in the name of its successor.
//   I10 An address with a subchannel is probed, if the newest settings say so and do not exempt it.
//       The result of its probes stays until these probes, or their replacements, report another
//       result. It ends when the address is not probed any more.
//   I11 An address counts in the first priority that has it in the newest configuration, for
//       metrics alone.
//
// Precondition: the shell passes on reports of the *present* subchannel of an address. It drops
// late reports of a stopped subchannel of the same address.

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
#include "absl/strings/string_view.h"

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

class SubchannelMapCore {
 public:
  /// See I8.
  static constexpr std::int64_t kMostInHurry = 64;

  SubchannelMapEffects step(const SubchannelMapEvent& event, Instant now);

  /// Throws BrokenInvariant unless all invariants hold. O(n): for tests and the simulator.
  void check_invariants() const;

  /// The number of subchannels.
  std::size_t size() const { return entries_.size(); }

  /// The number of paths with a known holder, present or recently gone.
  std::size_t remembered_holders() const { return parties_.size(); }

 private:
  /// A priority, or the greatest number for all priorities from that one on.
  using PriorityNumber = std::uint8_t;
  static constexpr PriorityNumber kNoPriority = 255;

  /// The knowledge of one path. It is kept for a while after the holder is gone, so that late
  /// events of the holder are recognised.
  struct Party {
    PolicyPath path;
    std::uint64_t incarnation = 0;  ///< The newest heard of.
    bool present = true;            ///< The newest incarnation has not gone.
    Generation gone_in = 0;         ///< The generation in which the last incarnation went.
    std::set<Address> live;         ///< Held by the newest incarnation.
    std::set<Address> orphaned;     ///< Held by earlier ones, or by one that died.
  };

  struct Entry {
    SubchannelStateChanged raw;            ///< The last report of the subchannel.
    std::vector<Party*> holds;             ///< In order of path.
    std::optional<Generation> lingers_in;  ///< Set exactly while there are no holds.
    EndpointState counted = EndpointState::kIdle;
    PriorityNumber priority = kNoPriority;  ///< In the configuration.
    bool is_probed = false;
    absl::Status probed;  ///< The result of the probes (I10); OK while there is none.
  };

  using Entries = absl::flat_hash_map<Address, Entry>;

  /// See I9.
  struct Keeper {
    Party* party = nullptr;
    std::uint64_t incarnation = 0;  ///< The incarnation that gave the order.
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
  SubchannelStateChanged report_of(const Address& address, const Entry& entry) const;
  const absl::Status* verdict_of(HealthJudge judge,
                                 const Address& address,
                                 const Entry& entry) const;
  const absl::Status* verdict_on(const Address& address, const Entry& entry) const;
  void record_priorities(const EndpointsPtr& endpoints);
  PriorityNumber priority_of(const Address& address) const;
  void count(const Entry& entry, std::int64_t amount);
  void recount(const Address& address, Entry& entry);
  void recount_all(const SessionMarks& marks);
  EndpointState state_of(const Address& address, const Entry& entry) const;
  std::int64_t held_for_sessions() const;
  void observe_counts(SubchannelMapEffects& effects);
  void check_keeper() const;

  Instant now_{};  ///< The time of the step.
  SubchannelSettings settings_;
  Generation started_ = 0;
  Generation applied_ = 0;
  Entries entries_;
  std::map<PolicyPath, Party> parties_;
  /// Entries that lost their last hold in this step; their fate is decided at its end (I1).
  std::vector<Address> unheld_;
  std::set<std::pair<Generation, Address>> lingering_;
  /// By judge, as reported last. They outlive entries: a judge also says when an endpoint is well
  /// again.
  std::array<std::shared_ptr<const UnhealthyEndpoints>, kHealthJudges> unhealthy_;
  std::shared_ptr<const TrackEndpoints::Table> trackers_;
  EndpointsPtr endpoints_;  ///< The cluster's; null: none are known.
  /// The first priority of each address of `endpoints_`, which owns the texts.
  absl::flat_hash_map<absl::string_view, PriorityNumber> priorities_;
  EndpointCounts counts_{};
  std::map<PriorityNumber, EndpointCounts> counts_of_;  ///< By priority.
  std::map<PriorityNumber, EndpointCounts> observed_;   ///< `counts_of_`, as reported last.
  EndpointsChanged changed_;                            ///< In this step.
  std::optional<Keeper> keeper_;
  std::int64_t held_observed_ = 0;  ///< The holds of the keeper, as reported last.
};

}  // namespace signalbox::lb
