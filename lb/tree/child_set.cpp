// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/child_set.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lb/health/host_count.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/state_sum.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

bool same_policy(const LbConfig& left, const LbConfig& right) {
  return left.index() == right.index() && policy_name(left) == policy_name(right);
}

}  // namespace

bool shares_localities(const EndpointsPtr& left, const EndpointsPtr& right) {
  if (left == right) return true;
  if (left == nullptr || right == nullptr) return false;
  const auto same_but_localities = [&] {
    return left->drops == right->drops &&
           left->overprovisioning_percent == right->overprovisioning_percent &&
           left->weighted_priority_health == right->weighted_priority_health;
  };
  return same_but_localities() &&
         std::ranges::equal(
             left->priorities, right->priorities, [](const Priority& a, const Priority& b) {
               return a.localities == b.localities && a.degraded == b.degraded &&
                      a.unhealthy == b.unhealthy;
             });
}

ChildName the_child() {
  return ChildName("child");
}

PriorityHosts hosts_of(const Child& child) {
  PriorityHosts sum;
  if (child.hosts != nullptr) {
    for (const PriorityHosts& at : child.hosts->priorities) {
      add(sum.healthy, at.healthy);
      add(sum.degraded, at.degraded);
      add(sum.total, at.total);
    }
    return sum;
  }
  sum.total = tally(child.endpoints);
  if (child.lasting_state != ConnectivityState::kTransientFailure) sum.healthy = sum.total;
  return sum;
}

void ChildSet::begin(const ConfigUpdated& update) {
  generation_ = update.generation;
  xds_ = update.xds;
}

void ChildSet::update(const ChildName& name,
                      LbConfigPtr config,
                      EndpointsPtr endpoints,
                      LbEffects& effects) {
  SIGNALBOX_INVARIANT(config != nullptr, "a child is sent a configuration");
  const ConfigUpdated update{generation_, config, xds_, endpoints};
  const auto [found, is_new] = children_.try_emplace(name);
  Entry& entry = found->second;
  if (is_new) {
    entry.child.name = entry.running = name;
    entry.child.picker = make_queue_picker();
    ++in_state_[index_of(entry.child.lasting_state)];
    // A new child need not answer older generations.
    entry.answered = entry.sent = generation_ == 0 ? 0 : generation_ - 1;
    effects.push_back(StartChild{name, update});
  } else if (!same_policy(*entry.child.config, *config)) {
    replace(entry, update, effects);
  } else {
    effects.push_back(UpdateChild{entry.running, update});
  }
  entry.child.config = std::move(config);
  entry.child.endpoints = std::move(endpoints);
  owe(entry, generation_, entry.dead ? generation_ : entry.answered);
}

void ChildSet::update_if_changed(const ChildName& name,
                                 LbConfigPtr config,
                                 EndpointsPtr endpoints,
                                 LbEffects& effects) {
  const Child* child = find(name);
  if (child != nullptr && same_config(child->config, config) &&
      shares_localities(child->endpoints, endpoints)) {
    return;
  }
  update(name, std::move(config), std::move(endpoints), effects);
}

void ChildSet::stop(const ChildName& name, LbEffects& effects) {
  const auto found = children_.find(name);
  if (found == children_.end()) return;
  Entry& entry = found->second;
  owe(entry, entry.sent, entry.sent);
  --in_state_[index_of(entry.child.lasting_state)];
  if (entry.outgoing) stop_policy(*entry.outgoing, effects);
  stop_policy(entry.running, effects);
  children_.erase(found);
}

void ChildSet::excuse(const ChildName& name) {
  const auto found = children_.find(name);
  if (found != children_.end()) owe(found->second, found->second.sent, found->second.sent);
}

void ChildSet::clear(LbEffects& effects) {
  while (!children_.empty())
    stop(children_.begin()->first, effects);
}

const Child* ChildSet::hear(const ChildStateChanged& event, LbEffects& effects) {
  SIGNALBOX_INVARIANT(event.picker != nullptr, "a child reports its state with its picker");
  Entry* entry = entry_of(event.child);
  if (entry == nullptr) return nullptr;
  entry->child.state_before = entry->child.state;
  if (entry->outgoing == event.child) {
    take(*entry, event);
    if (event.state != ConnectivityState::kReady) hand_over(*entry, effects);
    return &entry->child;
  }
  entry->dead = false;
  if (entry->outgoing) {
    entry->incoming = event;
    if (event.state != ConnectivityState::kConnecting) hand_over(*entry, effects);
  } else {
    take(*entry, event);
  }
  return &entry->child;
}

const Child* ChildSet::hear(const ChildApplied& event) {
  Entry* entry = entry_of(event.child);
  if (entry == nullptr || entry->outgoing == event.child) return nullptr;
  entry->dead = false;
  owe(*entry, entry->sent, std::max(entry->answered, event.generation));
  return &entry->child;
}

// Only the death of the newest policy counts. An old policy that still serves (C4 of child_set.hpp)
// need not answer, and its last picker remains in use after its death.
const Child* ChildSet::hear(const ChildDied& event) {
  Entry* entry = entry_of(event.child);
  if (entry == nullptr || entry->outgoing == event.child) return nullptr;
  entry->dead = true;
  owe(*entry, entry->sent, std::max(entry->answered, entry->sent));
  return &entry->child;
}

const Child* ChildSet::hear(const ChildAskedReresolution& event) {
  const Entry* entry = entry_of(event.child);
  return entry == nullptr ? nullptr : &entry->child;
}

void ChildSet::hear_other(const LbEvent& event, LbEffects& effects) {
  std::visit(Overloaded{
                 [&](const ChildApplied& applied) { hear(applied); },
                 [&](const ChildDied& died) { hear(died); },
                 [&](const ChildAskedReresolution& asked) {
                   if (hear(asked) != nullptr) effects.push_back(RequestReresolution{});
                 },
                 [](const auto&) {},
             },
             event);
}

void ChildSet::exit_idle(const ChildName& name, LbEffects& effects) const {
  const auto found = children_.find(name);
  if (found == children_.end()) return;
  if (found->second.outgoing) effects.push_back(ExitIdleChild{*found->second.outgoing});
  effects.push_back(ExitIdleChild{found->second.running});
}

const Child* ChildSet::find(const ChildName& name) const {
  const auto found = children_.find(name);
  return found == children_.end() ? nullptr : &found->second.child;
}

Generation ChildSet::reached() const {
  return owing_.empty() ? generation_ : std::min(generation_, owing_.begin()->first);
}

void ChildSet::report_applied(LbEffects& effects) {
  if (reached() <= applied_) return;
  applied_ = reached();
  effects.push_back(ReportApplied{applied_});
}

// The child for which a policy runs under the name `running`, be it the newest or the old policy;
// null: there is none.
ChildSet::Entry* ChildSet::entry_of(const ChildName& running) {
  const auto replacement = names_.find(running);
  const auto found = children_.find(replacement == names_.end() ? running : replacement->second);
  if (found == children_.end()) return nullptr;
  Entry& entry = found->second;
  return entry.running == running || entry.outgoing == running ? &entry : nullptr;
}

// Starts a policy of another type for a child. The policy that serves runs on until hand_over() if
// it is READY. Any other policy of the child is stopped at once (C4 of child_set.hpp).
void ChildSet::replace(Entry& entry, const ConfigUpdated& update, LbEffects& effects) {
  if (entry.outgoing || entry.child.state != ConnectivityState::kReady) {
    stop_policy(entry.running, effects);
    entry.fresh = !entry.outgoing;
  } else {
    entry.outgoing = entry.running;
    entry.child.replacing = true;
  }
  entry.incoming.reset();
  entry.dead = false;
  entry.running = ChildName(entry.child.name.str() + "~" + std::to_string(++replacements_));
  names_[entry.running] = entry.child.name;
  effects.push_back(StartChild{entry.running, update});
}

// Stops the old policy. From now on calls use the newest policy.
void ChildSet::hand_over(Entry& entry, LbEffects& effects) {
  stop_policy(*entry.outgoing, effects);
  entry.outgoing.reset();
  entry.child.replacing = false;
  entry.fresh = true;
  const ChildStateChanged connecting{
      entry.running, ConnectivityState::kConnecting, {}, make_queue_picker()};
  take(entry, std::exchange(entry.incoming, std::nullopt).value_or(connecting));
}

void ChildSet::stop_policy(const ChildName& running, LbEffects& effects) {
  effects.push_back(StopChild{running});
  names_.erase(running);
}

void ChildSet::take(Entry& entry, const ChildStateChanged& event) {
  Child& child = entry.child;
  child.state = event.state;
  child.status = event.status;
  child.picker = event.picker;
  child.hosts = event.hosts;
  const bool fresh = std::exchange(entry.fresh, false);
  const bool lasts = !fresh && child.lasting_state == ConnectivityState::kTransientFailure &&
                     event.state != ConnectivityState::kReady;
  if (lasts) return;
  --in_state_[index_of(child.lasting_state)];
  child.lasting_state = event.state;
  ++in_state_[index_of(child.lasting_state)];
}

// Records which generation the child was sent and which it has answered, and updates `owing_`.
void ChildSet::owe(Entry& entry, Generation sent, Generation answered) {
  if (entry.answered < entry.sent) {
    const auto old = owing_.find(entry.answered);
    if (--old->second == 0) owing_.erase(old);
  }
  entry.sent = sent;
  entry.answered = answered;
  if (entry.answered < entry.sent) ++owing_[entry.answered];
}

ConnectivityState ChildSet::aggregate() const {
  return sum_of(in_state_);
}

}  // namespace signalbox::lb
