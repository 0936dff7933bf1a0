// SPDX-License-Identifier: Apache-2.0
//
// subchannel_map_core — owns all subchannels of a leaf cluster, and knows which policies hold each.
//
//   policies ─ acquire, release, settle ─▶ [subchannel_map_core] ─ spawn, stop, connect ──▶│
//            ◀──────────── NotifyHolder ◀─                       ◀─ SubchannelStateChanged ─│
//   outlier_detection ─ EndpointHealthChanged ─▶                                subchannels ┘
//                                                   ─ start, stop ─▶ health checkers
//                                                   ◀─ HealthChecked
//
// A holder is a policy that uses addresses. Its path in the policy tree identifies it. Each restart
// of the policy's actor, or of one above it, is a new and greater incarnation of the holder. A hold
// is a holder's use of an address. It is *live* while the incarnation that acquired it runs, and
// *orphaned* afterwards. An orphaned hold keeps the subchannel, but nothing is reported to its
// holder. If the next incarnation acquires the address, the hold is live again. If that incarnation
// settles (has processed a configuration) without acquiring the address, the hold ends.
//
// Invariants
//   I1  An address has an entry while it has a subchannel. An entry that has no hold at the *end of
//       a step* is stopped or lingers (I3). Holds are judged only then, so a step that moves an
//       address from one holder to another keeps the connection (A75-34, A75-35).
//   I2  A holder has at most one hold on an address: a second acquisition or release changes
//       nothing. Events of an incarnation older than the newest are dropped, except requests to
//       connect.
//   I3  An entry that loses its last hold, and that the keeper does not take at once (I9), lingers
//       until the generation that is being applied has been applied everywhere. Then it is stopped,
//       unless the keeper takes it. So an endpoint that moves between priorities keeps its
//       connection. When no generation is being applied, the entry is stopped at once.
//   I4  Orphaned holds end when the holder's next incarnation settles, or when the holder ends for
//       good. They also end when a generation has been applied that is later than the newest one at
//       the time of the death.
//   I5  Every change of a subchannel is reported to the keeper (I9), then to the other holders with
//       a live hold, in the order of their paths. An acquisition that is not dropped (I2) is
//       answered with a report of the present state, except one by the keeper of an address that
//       has left its table. The order of reports on several addresses never depends on the hash
//       table.
//   I6  Health changes the reports to holders, never a connection (A61). An endpoint is healthy
//       while neither outlier detection nor health checks find it unfit. Neither of the two undoes
//       what the other has found.
//   I7  A connection is secured as the newest TLS settings say (A29). When the TLS settings change,
//       every subchannel is replaced by an IDLE one. Calls on the old connections run to their end.
//   I8  An attempt may use short back-offs (ConnectRequested::may_hurry) while fewer than
//       kMostInHurry addresses are CONNECTING or in TRANSIENT_FAILURE (ejected, unhealthy and
//       DRAINING ones do not count). So the loss of thousands of addresses does not cause thousands
//       of quick attempts.
//   I9  One holder, the keeper, may keep sessions on the addresses of a table (KeepSessions). The
//       keeper learns every change of these addresses, before the other holders, and without a hold
//       too. It holds only addresses of the table, and only while no other holder does (A75-25).
//       Its hold begins when the last other hold ends, in the same step, or when the entry has
//       lingered (I3), if a session used the address within the idle timeout (A75-34). It also
//       begins when the keeper acquires the address (A75-37). Its hold ends when another holder
//       acquires the address, in the same step (A75-35), when the address leaves the table
//       (A75-36), or when a sweep finds no recent session (A75-29). After the keeper's death its
//       holds begin and end in the same way, for its next incarnation.
//   I10 An address with a subchannel is probed if the newest settings have health checks and do not
//       exempt the address. A result stays until the next result, even if new settings replace the
//       probes. When the address is not probed any more, the result is forgotten.
//   I11 In metrics, an address counts for the first priority that has it in the newest
//       configuration.
//   I12 When the number of connections per address changes, existing subchannels learn the new
//       number, and keep their connections (A105-4).
//   I13 When the actor of a subchannel dies, its holders hear TRANSIENT_FAILURE, so they do not ask
//       it to connect before it runs again. If it was READY, they hear IDLE before that, as when
//       the server closes the connection (A62).
//
// Precondition: the actor around this core passes on reports of an address's *current* subchannel
// only. It drops late reports of an earlier, stopped subchannel of the address.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

/// The state of a subchannel, for operators. `raw` is the state of its connection. `state` also
/// says whether the endpoint is ejected, unhealthy or DRAINING.
struct SubchannelSeen {
  EndpointState state = EndpointState::kIdle;
  ConnectivityState raw = ConnectivityState::kIdle;
  Instant since{};   ///< When `state` began.
  absl::Status why;  ///< Why calls cannot or must not use the address; OK: no reason is known.
  std::uint32_t ejections = 0;  ///< Ejections of the endpoint since the map has had the address.
  ConnectionPtr connection;     ///< Null unless `raw` is READY.
};

class SubchannelMapCore {
 public:
  /// While fewer addresses than this are failing or connecting, attempts may use short back-offs
  /// (I8).
  static constexpr std::int64_t kMostInHurry = 64;

  SubchannelMapEffects step(const SubchannelMapEvent& event, Instant now);

  /// The addresses that the last step changed, in the order of the changes, each with its
  /// subchannel now; nullopt: the subchannel was stopped. An address may be listed twice.
  std::vector<std::pair<Address, std::optional<SubchannelSeen>>> take_changes();

  /// Throws BrokenInvariant if a record contradicts an invariant. Visits all entries: for tests and
  /// the simulator.
  void check_invariants() const;

  /// The number of subchannels.
  std::size_t size() const { return entries_.size(); }

  /// How many holders have a record (Party): those that run, and ended ones not yet forgotten.
  std::size_t remembered_holders() const { return parties_.size(); }

 private:
  /// The number of a priority; 254 means priority 254 or a later one. kNoPriority: the
  /// configuration does not have the address.
  using PriorityNumber = std::uint8_t;
  static constexpr PriorityNumber kNoPriority = 255;

  /// The map's record of one holder. It outlives the holder until one more generation of the
  /// configuration has been applied, so that late events of the holder are recognised.
  struct Party {
    PolicyPath path;
    Incarnation incarnation;     ///< The newest known incarnation.
    bool present = true;         ///< The newest incarnation still runs.
    Generation gone_in = 0;      ///< `started_` when an incarnation last ended.
    std::set<Address> live;      ///< Addresses with a live hold.
    std::set<Address> orphaned;  ///< Addresses with an orphaned hold.
  };

  struct Entry {
    SubchannelStateChanged raw;  ///< The last report of the subchannel.
    /// The holders, in the order of their paths.
    absl::InlinedVector<Party*, 1> holds;
    /// The generation for which the entry lingers (I3). At the end of a step it is set exactly if
    /// no policy holds the address.
    std::optional<Generation> lingers_in;
    EndpointState counted = EndpointState::kIdle;  ///< The state in which counts_ has it.
    PriorityNumber priority = kNoPriority;         ///< The first priority that has the address.
    bool is_probed = false;
    std::uint32_t ejections = 0;
    std::uint32_t recorded = 0;  ///< `recorded_` of the latest recording that found this entry.
    Instant since{};             ///< When the state in `counted` began.
    absl::Status probed;         ///< The result of the probes (I10); OK while there is none.
  };

  using Entries = absl::node_hash_map<Address, Entry>;

  /// The holder that keeps connections for sessions (I9).
  struct Keeper {
    Party* party = nullptr;
    Incarnation incarnation;  ///< The incarnation that sent KeepSessions.
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
  void on(const SubchannelDied& event, SubchannelMapEffects& effects);

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
  void each_address(absl::FunctionRef<void(const Address&, PriorityNumber)> see) const;
  void record_priorities(const EndpointsPtr& endpoints);
  void check_absent(const absl::flat_hash_map<Address, PriorityNumber>& priorities) const;
  void set_priority(Entry& entry, PriorityNumber priority);
  PriorityNumber take_priority(const Address& address);
  void count(const Entry& entry, std::int64_t amount);
  void recount(const Address& address, Entry& entry);
  void recount_all(const SessionMarks& marks);
  EndpointState state_of(const Address& address, const Entry& entry) const;
  std::int64_t held_for_sessions() const;
  void observe_counts(SubchannelMapEffects& effects);
  void check_keeper() const;

  Instant now_{};  ///< The time of the step.
  /// Never null. Subchannels share it with the map.
  SubchannelSettingsPtr settings_ = std::make_shared<const SubchannelSettings>();
  Generation started_ = 0;
  Generation applied_ = 0;
  Entries entries_;
  std::map<PolicyPath, Party> parties_;
  /// Entries that lost their last hold in this step. The end of the step decides whether they are
  /// stopped (I1).
  std::vector<Address> unheld_;
  std::set<std::pair<Generation, Address>> lingering_;
  /// The newest table of unfit endpoints, by judge. outlier_detection sends one; the results of
  /// health checks are in Entry::probed. A table may have addresses that `entries_` does not have:
  /// a policy may acquire them later.
  std::array<std::shared_ptr<const UnhealthyEndpoints>, kHealthJudges> unhealthy_;
  std::shared_ptr<const TrackEndpoints::Table> trackers_;
  EndpointsPtr endpoints_;  ///< The cluster's endpoints; null: none are known.
  /// For each address of `endpoints_` without an entry, the first priority that has it.
  absl::flat_hash_map<Address, PriorityNumber> absent_;
  std::uint32_t recorded_ = 0;  ///< How often the priorities were recorded.
  EndpointCounts counts_{};
  std::map<PriorityNumber, EndpointCounts> counts_of_;  ///< By priority.
  std::map<PriorityNumber, EndpointCounts> observed_;   ///< `counts_of_`, as reported last.
  EndpointsChanged changed_;                            ///< Entries that came or went in this step.
  std::optional<Keeper> keeper_;
  std::vector<Address> changed_addresses_;  ///< See take_changes().
  std::int64_t held_observed_ = 0;          ///< SessionsHeld::held as it was last observed.
};

}  // namespace signalbox::lb
