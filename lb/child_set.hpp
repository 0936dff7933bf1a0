// SPDX-License-Identifier: Apache-2.0
//
// ChildSet — the children of a composite policy: what was ordered, what they said, what they owe.
//
//   ConfigUpdated ─▶ begin ─▶ update / stop ─▶ StartChild, UpdateChild, StopChild
//   ChildStateChanged, ChildApplied, ChildDied ─▶ hear ─▶ Child as last reported
//                                                └─▶ report_applied ─▶ ReportApplied
//   ChildAskedReresolution ─▶ hear_other ─▶ RequestReresolution
//
// The composite half of "applying a configuration": a composite has applied a generation when it
// has processed it itself and every living child has answered what it was sent of it.
//
// Invariants
//   C1  applied() never falls.
//   C2  A child that is dead or stopped holds nobody up: it counts as having answered.
//   C3  A child always has a picker; before its first report a queueing one.
//   C4  A child whose policy type changed is switched gracefully (A37-22): the new policy runs
//       under a name of its own ("name~2"); an old one that is READY runs on, and serves, until it
//       is not READY any more or the new one says something other than CONNECTING.
//   C5  Events of unknown, stopped and replaced children are dropped.
//
// Composites know a child by one name, whatever runs under it: Child::name. Only effects and events
// carry the name of the policy that runs.

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
  /// `state` for those who sum children up: TRANSIENT_FAILURE stays until READY, so that the
  /// sum does not flap while a failed child keeps trying.
  ConnectivityState lasting_state = ConnectivityState::kConnecting;
  LbConfigPtr config;
  EndpointsPtr endpoints;
  HostReportPtr hosts = nullptr;  ///< Null: it does not say, or not yet.
  /// What `state` was before the report heard last.
  ConnectivityState state_before = ConnectivityState::kConnecting;
  /// C4: `state` and `picker` are the old policy's, which still serves.
  bool replacing = false;
};

/// Whether both hold the same localities, by pointer, and are the same in all else: a receiver of
/// `left` learns nothing from `right`.
bool shares_localities(const EndpointsPtr& left, const EndpointsPtr& right);

class ChildSet {
 public:
  /// Everything sent from now on is part of `update`: its generation and its world.
  void begin(const ConfigUpdated& update);

  /// The generation begun last.
  Generation generation() const { return generation_; }

  /// Sends a child its configuration: starts, updates or replaces it.
  void update(const ChildName& name,
              LbConfigPtr config,
              EndpointsPtr endpoints,
              LbEffects& effects);

  /// As update(), but a child that would learn nothing from it hears nothing. Only for children
  /// that do not read ConfigUpdated::xds.
  void update_if_changed(const ChildName& name,
                         LbConfigPtr config,
                         EndpointsPtr endpoints,
                         LbEffects& effects);

  void stop(const ChildName& name, LbEffects& effects);

  /// Nobody waits for what the child still owes: it is to be stopped.
  void excuse(const ChildName& name);

  /// Stops every child.
  void clear(LbEffects& effects);

  /// Each returns the child, or null when it is unknown.
  const Child* hear(const ChildStateChanged& event, LbEffects& effects);
  const Child* hear(const ChildApplied& event);
  const Child* hear(const ChildDied& event);
  const Child* hear(const ChildAskedReresolution& event);

  /// For the events that a composite has no rule of its own for. What children have applied, and
  /// that one died, is noted; a child's request to resolve names again goes on upwards (A37-33).
  void hear_other(const LbEvent& event, LbEffects& effects);

  /// Asks the child, and the one that is to replace it, to leave IDLE.
  void exit_idle(const ChildName& name, LbEffects& effects) const;

  const Child* find(const ChildName& name) const;

  bool contains(const ChildName& name) const { return find(name) != nullptr; }

  std::size_t size() const { return children_.size(); }

  template <typename Visit>
  void each(Visit&& visit) const {
    for (const auto& [name, entry] : children_)
      visit(name, entry.child);
  }

  /// READY if any child is; else CONNECTING if any is; else IDLE if any is; else
  /// TRANSIENT_FAILURE. By lasting_state; O(1).
  ConnectivityState aggregate() const;

  /// The newest generation processed here and by all living children, as it is at this moment.
  Generation reached() const;

  /// The newest that was ever reached.
  Generation applied() const { return applied_; }

  /// Orders ReportApplied if applied() rises. To be called at the end of every step.
  void report_applied(LbEffects& effects);

 private:
  struct Entry {
    Child child;
    ChildName running;                  ///< The name that the newest policy runs under.
    std::optional<ChildName> outgoing;  ///< That of the old one, while it serves.
    /// What the newest policy said last, while the old one serves.
    std::optional<ChildStateChanged> incoming;
    bool fresh = false;       ///< The newest policy serves, and has not reported yet.
    Generation sent = 0;      ///< The newest generation that it was sent.
    Generation answered = 0;  ///< The newest generation that it has answered.
    bool dead = false;
  };

  Entry* entry_of(const ChildName& running);
  void replace(Entry& entry, const ConfigUpdated& update, LbEffects& effects);
  void hand_over(Entry& entry, LbEffects& effects);
  void stop_policy(const ChildName& running, LbEffects& effects);
  void take(Entry& entry, const ChildStateChanged& event);
  void owe(Entry& entry, Generation sent, Generation answered);

  std::map<ChildName, Entry> children_;
  std::map<ChildName, ChildName> names_;  ///< From the names of replacements to their children's.
  std::uint64_t replacements_ = 1;
  std::array<std::size_t, 4> in_state_{};  ///< How many children have which lasting_state.
  /// For each child that owes an answer, what it has answered: how many there are of each.
  std::map<Generation, std::size_t> owing_;
  XdsConfigPtr xds_;
  Generation generation_ = 0;
  Generation applied_ = 0;
};

}  // namespace signalbox::lb
