// SPDX-License-Identifier: Apache-2.0
#include "actors/child_policies.hpp"

#include <utility>
#include <vector>

namespace signalbox::actors {

using protocol::StopReason;

void ChildPolicies::open(PolicyPath parent_path, Hooks hooks) {
  parent_path_ = std::move(parent_path);
  hooks_ = std::move(hooks);
}

void ChildPolicies::start(const ChildName& name, const ConfigUpdated& update) {
  Child& child = children_[name];
  child.log.sent(update);
  launch_if_allowed(name, child);
}

void ChildPolicies::update(const ChildName& name, const ConfigUpdated& update) {
  Child& child = children_.at(name);
  child.log.sent(update);
  if (child.actor) {
    hooks_.send_config(child.actor, update);
  } else {
    launch_if_allowed(name, child);
  }
}

void ChildPolicies::launch_if_allowed(const ChildName& name, Child& child) {
  const bool waits = suspended_ || child.awaited != 0;
  if (!child.actor && !waits && child.log.to_replay()) launch(name, child);
}

void ChildPolicies::launch(const ChildName& name, Child& child) {
  const ConfigUpdated& update = child.log.replay();
  PolicyBirth birth;
  birth.config = update.config;
  birth.name = name;
  birth.path = PolicyPath(parent_path_.str() + "/" + name.str());
  birth.cluster = cluster_;
  birth.launch = ++launches_;
  birth.subchannels = map_;
  birth.parent_incarnation = incarnation_;
  child.actor = hooks_.spawn(std::move(birth), [this, name] { lost(name); });
  hooks_.send_config(child.actor, update);
}

void ChildPolicies::lost(const ChildName& name) {
  const auto found = children_.find(name);
  if (found == children_.end()) return;
  Child& child = found->second;
  child.actor = nullptr;
  child.log.died();
  child.awaited = ++restarts_;
  hooks_.restart_after({name.str(), child.awaited}, child.delay);
  const bool hopeless = child.log.to_replay() == nullptr;
  hooks_.died(name);
  if (hopeless) hooks_.given_up(name);
}

// The child's restart delay is over: restarts the child, unless the children are held back or no
// configuration is left for it. Ignores a `due` with a number that the child does not await: that
// `due` was meant for an earlier child of the same name, which was stopped.
void ChildPolicies::restart_due(const protocol::RestartDue& due) {
  const ChildName name(due.what);
  const auto found = children_.find(name);
  if (found == children_.end() || found->second.awaited != due.number) return;
  found->second.awaited = 0;
  launch_if_allowed(name, found->second);
}

void ChildPolicies::stop(const ChildName& name, StopReason reason) {
  const auto found = children_.find(name);
  if (found == children_.end()) return;
  if (found->second.actor) {
    hooks_.forget(found->second.actor);
    protocol::stop(found->second.actor, reason);
  }
  children_.erase(found);
}

void ChildPolicies::stop_all(StopReason reason) {
  while (!children_.empty())
    stop(ChildName(children_.begin()->first), reason);
}

void ChildPolicies::suspend_all() {
  suspended_ = true;
  std::vector<ChildName> suspended;
  for (auto& [name, child] : children_) {
    if (!child.actor) continue;
    hooks_.forget(child.actor);
    protocol::stop(child.actor, StopReason::kParentDied);
    child.actor = nullptr;
    suspended.push_back(name);
  }
  for (const ChildName& name : suspended)
    hooks_.died(name);
}

void ChildPolicies::resume_all() {
  for (auto& [name, child] : children_)
    launch_if_allowed(name, child);
}

void ChildPolicies::survived(const ChildName& name, Generation generation) {
  const auto found = children_.find(name);
  if (found != children_.end()) found->second.log.applied(generation);
}

protocol::PolicyActor ChildPolicies::actor(const ChildName& name) const {
  const auto found = children_.find(name);
  return found == children_.end() ? protocol::PolicyActor() : found->second.actor;
}

}  // namespace signalbox::actors
