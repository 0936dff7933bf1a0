// SPDX-License-Identifier: Apache-2.0
//
// ChildSet — the children of a composite policy: sends them updates, records their reports, and
// knows which of them have not yet answered a configuration.
//
//   ConfigUpdated ─▶ begin ─▶ update / stop ─▶ StartChild, UpdateChild, StopChild
//   ChildStateChanged, ChildApplied, ChildDied ─▶ hear ─▶ Child as last reported
//                                                └─▶ report_applied ─▶ ReportApplied
//   ChildAskedReresolution ─▶ hear_other ─▶ RequestReresolution
//
// ChildSet knows when a composite has applied a generation: when the composite itself has processed
// it, and every living child has reported as applied what it was sent up to then.
//
// Invariants
//   C1  applied() never falls.
//   C2  A dead, stopped or excused (see excuse()) child delays nothing: it counts as having
//       answered.
//   C3  A child always has a picker; before its first report the picker makes calls wait.
//   C4  A child with a new type of policy is switched gracefully (A37-22). The new policy runs
//       under a name of its own ("name~2"). An old policy that is READY runs on, and serves, until
//       it is not READY any more or the new policy reports something other than CONNECTING.
//   C5  Events of unknown children and of stopped policies are dropped.
//
// A composite knows a child by one name, Child::name, even if another policy runs for it. Effects
// and events have the name of the running policy ("name~2") instead.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// A child as it last reported.
struct Child {
  ChildName name;
  ConnectivityState state = ConnectivityState::kConnecting;
  absl::Status status;
  PickerPtr picker;
  /// The state that aggregate() uses. After TRANSIENT_FAILURE it stays until the child is READY, or
  /// until the first report of a policy that has replaced the child's. So the aggregated state does
  /// not flap while a failed child tries to connect.
  ConnectivityState lasting_state = ConnectivityState::kConnecting;
  LbConfigPtr config;
  EndpointsPtr endpoints;
  HostReportPtr hosts = nullptr;  ///< Null: the child has not reported how many endpoints are fit.
  /// `state` before the last report.
  ConnectivityState state_before = ConnectivityState::kConnecting;
  /// True: the child's old policy still serves while its new policy starts (C4). `state` and
  /// `picker` are those of the old policy.
  bool replacing = false;
};

/// Whether `left` and `right` have the same localities (by pointer) and equal values of all else
/// that a child reads. If so, a child that has `left` need not get `right`. probe_exceptions and
/// unweighted_localities are not compared, because no child reads them.
bool shares_localities(const EndpointsPtr& left, const EndpointsPtr& right);

/// How many endpoints of a child are healthy, and how many there are, all priorities together. They
/// come from the child's HostReport. Without one, all of its endpoints count as healthy, or none
/// while Child::lasting_state is TRANSIENT_FAILURE.
PriorityHosts hosts_of(const Child& child);

/// The name of the child in a policy that has one.
ChildName the_child();

class ChildSet {
 public:
  /// Begins a configuration: updates that are sent to children from now on have the generation and
  /// the XdsConfig of `update`.
  void begin(const ConfigUpdated& update);

  /// The generation of the last begin().
  Generation generation() const { return generation_; }

  /// Sends a child its configuration: starts the child's policy, updates it, or replaces it (C4).
  void update(const ChildName& name,
              LbConfigPtr config,
              EndpointsPtr endpoints,
              LbEffects& effects);

  /// As update(), but sends nothing if config and endpoints are the same as before. Only for
  /// children that do not read ConfigUpdated::xds.
  void update_if_changed(const ChildName& name,
                         LbConfigPtr config,
                         EndpointsPtr endpoints,
                         LbEffects& effects);

  void stop(const ChildName& name, LbEffects& effects);

  /// Stops waiting for the child's answer to what it was sent: the new configuration does not use
  /// the child, the child has taken too long, or it is about to get a newer configuration.
  void excuse(const ChildName& name);

  /// Stops every child.
  void clear(LbEffects& effects);

  /// Records the event, and returns the child that sent it. Null: the child is unknown, or the
  /// event is the ChildApplied or ChildDied of an old policy (C4), which changes nothing. A
  /// ChildAskedReresolution is not recorded.
  const Child* hear(const ChildStateChanged& event, LbEffects& effects);
  const Child* hear(const ChildApplied& event);
  const Child* hear(const ChildDied& event);
  const Child* hear(const ChildAskedReresolution& event);

  /// Handles events for which a composite has no code of its own. Records ChildApplied and
  /// ChildDied. Passes ChildAskedReresolution on to the parent (A37-33). Ignores other events.
  void hear_other(const LbEvent& event, LbEffects& effects);

  /// Tells the child to leave IDLE, and also the policy that is to replace its current one.
  void exit_idle(const ChildName& name, LbEffects& effects) const;

  const Child* find(const ChildName& name) const;

  bool contains(const ChildName& name) const { return find(name) != nullptr; }

  std::size_t size() const { return children_.size(); }

  template <typename Visit>
  void each(Visit&& visit) const {
    for (const auto& [name, entry] : children_)
      visit(name, entry.child);
  }

  /// READY if any child is READY, else CONNECTING if any is, else IDLE if any is, else
  /// TRANSIENT_FAILURE. Uses lasting_state. O(1).
  ConnectivityState aggregate() const;

  /// The newest generation that the composite itself and all living children have processed. A
  /// child that was not sent a generation, or is excused from it, counts as having processed it.
  Generation reached() const;

  /// The generation in the last ReportApplied. It never falls (C1).
  Generation applied() const { return applied_; }

  /// Adds ReportApplied to `effects` if applied() rises. Call it at the end of every step.
  void report_applied(LbEffects& effects);

 private:
  struct Entry {
    Child child;
    ChildName running;                  ///< The name of the newest policy.
    std::optional<ChildName> outgoing;  ///< The name of the old policy, while it serves.
    /// The last report of the newest policy, while the old policy serves.
    std::optional<ChildStateChanged> incoming;
    bool fresh = false;       ///< The next take() ends a lasting TRANSIENT_FAILURE.
    Generation sent = 0;      ///< The newest generation that the child was sent.
    Generation answered = 0;  ///< The newest one that the child answered, or need not answer.
    bool dead = false;
  };

  Entry* entry_of(const ChildName& running);
  void replace(Entry& entry, const ConfigUpdated& update, LbEffects& effects);
  void hand_over(Entry& entry, LbEffects& effects);
  void stop_policy(const ChildName& running, LbEffects& effects);
  void take(Entry& entry, const ChildStateChanged& event);
  void owe(Entry& entry, Generation sent, Generation answered);

  std::map<ChildName, Entry> children_;
  std::map<ChildName, ChildName> names_;  ///< From "name~2" to the child's name.
  std::uint64_t replacements_ = 1;
  std::array<std::size_t, 4> in_state_{};  ///< The number of children, by lasting_state.
  /// How many children have not answered what they were sent, by the newest generation that they
  /// answered.
  std::map<Generation, std::size_t> owing_;
  XdsConfigPtr xds_;
  Generation generation_ = 0;
  Generation applied_ = 0;
};

}  // namespace signalbox::lb
