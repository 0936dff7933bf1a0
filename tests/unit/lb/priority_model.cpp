// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/priority_model.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;

bool good(ConnectivityState state) {
  return state == ConnectivityState::kReady || state == ConnectivityState::kIdle;
}

}  // namespace

bool PriorityModel::named(const std::string& child) const {
  return std::ranges::count(order_, child) != 0;
}

void PriorityModel::update(const std::vector<std::string>& priorities) {
  if (half_applied_) {
    next_ = priorities;
    return;
  }
  begin(priorities);
  finish_if_answered();
}

void PriorityModel::begin(const std::vector<std::string>& priorities) {
  order_ = priorities;
  half_applied_ = true;
  patience_ = now_ + 10s;
  for (auto& [name, child] : children_)
    child.owes = named(name) && !child.dead;
}

void PriorityModel::finish_if_answered() {
  while (half_applied_) {
    for (const auto& [name, child] : children_) {
      if (child.owes) return;
    }
    half_applied_ = false;
    patience_.reset();
    choose();
    std::vector<std::string> removed;
    for (const auto& [name, child] : children_) {
      if (!named(name)) removed.push_back(name);
    }
    for (const std::string& name : removed) {
      if (keeps_removed_) {
        deactivate(children_.at(name));
      } else {
        children_.erase(name);
      }
    }
    std::erase_if(children_, [](const auto& entry) { return entry.second.overdue; });
    if (next_) begin(*std::exchange(next_, std::nullopt));
  }
}

void PriorityModel::answered(const std::string& name) {
  Child& child = children_.at(name);
  child.owes = child.dead = false;
  finish_if_answered();
}

void PriorityModel::died(const std::string& name) {
  Child& child = children_.at(name);
  child.owes = false;
  child.dead = true;
  finish_if_answered();
}

void PriorityModel::reported(const std::string& name,
                             ConnectivityState state,
                             const std::string& picker) {
  Child& child = children_.at(name);
  child.dead = false;
  const ConnectivityState before = std::exchange(child.last, Shown{state, picker}).state;
  if (state == ConnectivityState::kConnecting) {
    if (before != state && child.good_since_failure) child.failover = now_ + 10s;
  } else {
    child.good_since_failure = good(state);
    child.failover.reset();
  }
  if (!half_applied_) {
    choose();
  } else if (in_use_ == name && good(state)) {
    show(child.last);
  }
}

void PriorityModel::fired(const std::string& timer) {
  const std::string name = timer.substr(timer.find('/') + 1);
  if (timer == "answers") {
    for (auto& [late, child] : children_)
      child.owes = false;
    finish_if_answered();
  } else if (timer.starts_with("failover/")) {
    children_.at(name).failover.reset();
    if (!half_applied_) choose();
  } else if (half_applied_) {
    children_.at(name).deletion.reset();
    children_.at(name).overdue = true;
  } else {
    children_.erase(name);
  }
}

// gRFC A56, "Algorithm for Choosing a Priority".
void PriorityModel::choose() {
  if (order_.empty()) {
    in_use_.reset();
    show({ConnectivityState::kTransientFailure,
          "fail UNAVAILABLE: priority policy has empty priority list"});
    return;
  }
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (children_.contains(order_[place])) {
      children_.at(order_[place]).deletion.reset();
      children_.at(order_[place]).overdue = false;
    } else {
      Child& child = children_[order_[place]];
      child.failover = now_ + 10s;
      child.owes = true;
    }
    const Child& child = children_.at(order_[place]);
    if (good(child.last.state)) return use(place, true);
    if (child.failover) return use(place, false);
  }
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (children_.at(order_[place]).last.state == ConnectivityState::kConnecting) {
      return use(place, false);
    }
  }
  use(order_.size() - 1, false);
}

void PriorityModel::use(std::size_t place, bool deactivate_lower) {
  if (deactivate_lower) {
    for (std::size_t lower = place + 1; lower < order_.size(); ++lower) {
      const auto found = children_.find(order_[lower]);
      if (found != children_.end()) deactivate(found->second);
    }
  }
  in_use_ = order_[place];
  show(children_.at(order_[place]).last);
}

void PriorityModel::deactivate(Child& child) const {
  if (!child.deletion && !child.overdue) child.deletion = now_ + 15min;
}

std::vector<std::string> PriorityModel::running() const {
  std::vector<std::string> names;
  names.reserve(children_.size());
  for (const auto& [name, child] : children_)
    names.push_back(name);
  return names;
}

std::map<std::string, Instant> PriorityModel::timers() const {
  std::map<std::string, Instant> timers;
  if (patience_) timers["answers"] = *patience_;
  for (const auto& [name, child] : children_) {
    if (child.failover) timers["failover/" + name] = *child.failover;
    if (child.deletion) timers["deactivation/" + name] = *child.deletion;
  }
  return timers;
}

}  // namespace signalbox::test
