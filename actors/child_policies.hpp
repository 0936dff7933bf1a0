// SPDX-License-Identifier: Apache-2.0
//
// ChildPolicies — the policy actors below one parent: start, update, stop, and restart after death.
//
//   StartChild, UpdateChild, StopChild ─▶ [ChildPolicies] ─▶ policy actors
//                       ChildDied ◀─ death watch ─▶ RestartDue ─▶ started anew
//
// Each policy actor has ChildPolicies for its children. Each channel actor has ChildPolicies for
// the root of its policy tree.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "actors/policy_birth.hpp"
#include "actors/supervision.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {

class ChildPolicies {
 public:
  struct Hooks {
    /// Makes the actor of a child, and monitors the actor. Calls `died` if the actor ends while it
    /// is monitored.
    std::function<protocol::PolicyActor(PolicyBirth birth, std::function<void()> died)> spawn;
    /// Stops monitoring the actor.
    std::function<void(const protocol::PolicyActor&)> forget;
    std::function<void(const protocol::PolicyActor&, ConfigUpdated)> send_config;
    /// Sends `due` to the parent after a delay: delay.next(now).
    std::function<void(protocol::RestartDue due, RestartDelay& delay)> restart_after;
    /// Tells the parent's core that the child died.
    std::function<void(const ChildName&)> died;
    /// Tells the parent's core that the dead child cannot be restarted before its next
    /// configuration comes: the child has applied no configuration, and its ReplayLog
    /// (supervision.hpp) has no other configuration to try.
    std::function<void(const ChildName&)> given_up;
  };

  void open(PolicyPath parent_path, Hooks hooks);

  /// Lets children start from now on, with `map` as their subchannel map. `cluster`: see
  /// lb::PolicyContext::cluster. `incarnation`: see PolicyBirth::parent_incarnation.
  void serve(protocol::SubchannelMapActor map, ClusterName cluster, Incarnation incarnation = {}) {
    map_ = std::move(map);
    cluster_ = std::move(cluster);
    incarnation_ = std::move(incarnation);
    suspended_ = false;
  }

  /// From now on no child starts before serve(), because the subchannel map that all children share
  /// is being restarted.
  void hold_back() { suspended_ = true; }

  void start(const ChildName& name, const ConfigUpdated& update);
  /// Sends `update` to the child. A child without an actor starts with `update` instead, but not
  /// before its pending restart or serve(). Precondition: contains(name).
  void update(const ChildName& name, const ConfigUpdated& update);
  void stop(const ChildName& name, protocol::StopReason reason);
  void stop_all(protocol::StopReason reason);
  /// Stops every child that has an actor, and reports it as died, because the subchannel map that
  /// all children share has died. No configuration is blamed for these deaths (ReplayLog). The
  /// children's last pickers stay in use. No child starts before serve() passes the next map.
  void suspend_all();
  /// Starts each child that has neither an actor nor a pending restart, with the configuration of
  /// its ReplayLog. A child without such a configuration is left out.
  void resume_all();

  /// The child itself has processed `generation`, so a later death is not blamed on this
  /// configuration. The child's own children may not have processed `generation` yet.
  void survived(const ChildName& name, Generation generation);
  void restart_due(const protocol::RestartDue& due);

  /// The child's actor; null: the child is unknown, or has no actor.
  protocol::PolicyActor actor(const ChildName& name) const;

  bool contains(const ChildName& name) const { return children_.contains(name); }

 private:
  struct Child {
    protocol::PolicyActor actor;
    ReplayLog log;
    RestartDelay delay;
    std::uint64_t awaited = 0;  ///< The number of the child's pending RestartDue; 0: none.
  };

  void launch_if_allowed(const ChildName& name, Child& child);
  void launch(const ChildName& name, Child& child);
  void lost(const ChildName& name);

  PolicyPath parent_path_;
  Hooks hooks_;
  protocol::SubchannelMapActor map_;
  ClusterName cluster_;
  Incarnation incarnation_;
  bool suspended_ = false;
  std::map<ChildName, Child> children_;
  std::uint64_t launches_ = 0;
  std::uint64_t restarts_ = 0;
};

/// Makes the hooks for a parent: the actor `self`, which has the interface Parent. `watches`
/// monitors the children. A child's death is counted in the metrics, and then reported. `self` and
/// `watches` must outlive the hooks.
template <typename Parent, typename Self>
ChildPolicies::Hooks policy_hooks(Self self,
                                  const EnvironmentPtr& environment,
                                  protocol::Watches& watches,
                                  std::function<void(const ChildName&)> died,
                                  std::function<void(const ChildName&)> given_up) {
  ChildPolicies::Hooks hooks;
  hooks.spawn = [self, environment, &watches](PolicyBirth child, std::function<void()> lost) {
    child.parent = Parent{self};
    auto actor = spawn_policy(self->home_system(), environment, std::move(child));
    watches.add(self, actor, [environment, lost = std::move(lost)](const caf::error& reason) {
      environment->instruments->count_actor_death("policy", protocol::reason_text(reason));
      lost();
    });
    return actor;
  };
  hooks.forget = [self, &watches](const protocol::PolicyActor& child) {
    watches.remove(self, child);
  };
  hooks.send_config = [self](const protocol::PolicyActor& child, ConfigUpdated update) {
    protocol::send(self, child, std::move(update));
  };
  hooks.restart_after = [self](protocol::RestartDue due, RestartDelay& delay) {
    protocol::send_after(self, Parent{self}, delay.next(protocol::now_of(self)), std::move(due));
  };
  hooks.died = std::move(died);
  hooks.given_up = std::move(given_up);
  return hooks;
}

}  // namespace signalbox::actors
