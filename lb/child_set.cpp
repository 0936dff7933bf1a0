// SPDX-License-Identifier: Apache-2.0
#include "lb/child_set.hpp"

#include <algorithm>
#include <utility>

#include "lb/pickers.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

bool same_policy(const LbConfig& left, const LbConfig& right) {
  return left.index() == right.index() && policy_name(left) == policy_name(right);
}

std::size_t index_of(ConnectivityState state) {
  return static_cast<std::size_t>(state);
}

}  // namespace

bool shares_localities(const EndpointsPtr& left, const EndpointsPtr& right) {
  if (left == right) return true;
  if (left == nullptr || right == nullptr || left->drops != right->drops) return false;
  return std::ranges::equal(
      left->priorities, right->priorities, [](const Priority& a, const Priority& b) {
        return a.localities == b.localities;
      });
}

bool forwards_reresolution(const LbConfig& config, const ChildName& child) {
  const auto* priority = std::get_if<PriorityConfig>(&config);
  if (priority == nullptr) return true;
  const auto found = priority->children.find(child);
  return found == priority->children.end() || !found->second.ignore_reresolution_requests;
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
    entry.child.picker = make_queue_picker();
    ++in_state_[index_of(entry.child.lasting_state)];
    // It has nothing older to answer for.
    entry.answered = entry.sent = generation_ == 0 ? 0 : generation_ - 1;
    effects.push_back(StartChild{name, update});
  } else if (!same_policy(*entry.child.config, *config)) {
    entry.child.replacing = true;
    entry.dead = false;
    effects.push_back(StopChild{name});
    effects.push_back(StartChild{name, update});
  } else {
    effects.push_back(UpdateChild{name, update});
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
  Entry* entry = entry_of(name);
  if (entry == nullptr) return;
  owe(*entry, entry->sent, entry->sent);
  --in_state_[index_of(entry->child.lasting_state)];
  effects.push_back(StopChild{name});
  children_.erase(name);
}

void ChildSet::clear(LbEffects& effects) {
  while (!children_.empty())
    stop(children_.begin()->first, effects);
}

const Child* ChildSet::hear(const ChildStateChanged& event) {
  SIGNALBOX_INVARIANT(event.picker != nullptr, "a child reports its state with its picker");
  Entry* entry = entry_of(event.child);
  if (entry == nullptr) return nullptr;
  entry->dead = false;
  const bool old_serves = entry->child.replacing &&
                          entry->child.state == ConnectivityState::kReady &&
                          event.state == ConnectivityState::kConnecting;
  if (old_serves) return &entry->child;
  take(entry->child, event);
  owe(*entry, entry->sent, std::max(entry->answered, entry->heard));
  return &entry->child;
}

const Child* ChildSet::hear(const ChildApplied& event) {
  Entry* entry = entry_of(event.child);
  if (entry == nullptr) return nullptr;
  entry->dead = false;
  entry->heard = std::max(entry->heard, event.generation);
  if (!entry->child.replacing) owe(*entry, entry->sent, std::max(entry->answered, entry->heard));
  return &entry->child;
}

const Child* ChildSet::hear(const ChildDied& event) {
  Entry* entry = entry_of(event.child);
  if (entry == nullptr) return nullptr;
  entry->dead = true;
  owe(*entry, entry->sent, std::max(entry->answered, entry->sent));
  return &entry->child;
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

ChildSet::Entry* ChildSet::entry_of(const ChildName& name) {
  const auto found = children_.find(name);
  return found == children_.end() ? nullptr : &found->second;
}

void ChildSet::take(Child& child, const ChildStateChanged& event) {
  const bool was_replaced = std::exchange(child.replacing, false);
  child.state = event.state;
  child.status = event.status;
  child.picker = event.picker;
  const bool lasts = !was_replaced && child.lasting_state == ConnectivityState::kTransientFailure &&
                     event.state != ConnectivityState::kReady;
  if (lasts) return;
  --in_state_[index_of(child.lasting_state)];
  child.lasting_state = event.state;
  ++in_state_[index_of(child.lasting_state)];
}

// Sets what the child was sent and has answered, and keeps `owing_` in step.
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
  for (const auto state :
       {ConnectivityState::kReady, ConnectivityState::kConnecting, ConnectivityState::kIdle}) {
    if (in_state_[index_of(state)] != 0) return state;
  }
  return ConnectivityState::kTransientFailure;
}

}  // namespace signalbox::lb
