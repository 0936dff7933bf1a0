// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/priority_model.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

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
      if (options_.keeps_removed) {
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
    child.was_ready |= state == ConnectivityState::kReady;
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
    const Child& child = activate(place);
    if (good(child.last.state)) return use(place, true);
    if (!child.failover) continue;
    const std::size_t used = child.was_ready ? ready_standby(place) : place;
    for (std::size_t between = place + 1; between <= used; ++between)
      activate(between);
    return use(used, used != place);
  }
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (children_.at(order_[place]).last.state == ConnectivityState::kConnecting) {
      return use(place, false);
    }
  }
  use(order_.size() - 1, false);
}

PriorityModel::Child& PriorityModel::activate(std::size_t place) {
  const auto [found, is_new] = children_.try_emplace(order_[place]);
  Child& child = found->second;
  child.deletion.reset();
  child.overdue = false;
  if (is_new) {
    child.failover = now_ + 10s;
    child.owes = true;
  }
  return child;
}

std::size_t PriorityModel::end_of_standbys(std::size_t place) const {
  const std::size_t most = options_.is_aggregate ? 1 : order_.size();
  return std::min(place + 1 + std::min<std::size_t>(options_.standbys, most), order_.size());
}

std::size_t PriorityModel::ready_standby(std::size_t lost) const {
  for (std::size_t lower = lost + 1; lower < end_of_standbys(lost); ++lower) {
    const auto found = children_.find(order_[lower]);
    if (found != children_.end() && found->second.last.state == ConnectivityState::kReady) {
      return lower;
    }
  }
  return lost;
}

void PriorityModel::use(std::size_t place, bool deactivate_lower) {
  for (std::size_t lower = place + 1; deactivate_lower && lower < order_.size(); ++lower) {
    if (lower < end_of_standbys(place)) {
      if (activate(lower).last.state == ConnectivityState::kIdle) woken_.insert(order_[lower]);
    } else if (const auto found = children_.find(order_[lower]); found != children_.end()) {
      deactivate(found->second);
    }
  }
  in_use_ = order_[place];
  Shown last = children_.at(order_[place]).last;
  if (last.state == ConnectivityState::kTransientFailure && order_.size() > 1) {
    last.picker.insert(last.picker.find(": ") + 2,
                       absl::StrCat("all ",
                                    order_.size(),
                                    " priorities failed; priority ",
                                    place,
                                    options_.is_aggregate ? ", cluster " + order_[place] : "",
                                    ": "));
  }
  show(last);
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
