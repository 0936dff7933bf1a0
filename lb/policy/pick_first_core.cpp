// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/pick_first_core.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

absl::Status all_failed(const absl::Status& last_error) {
  return absl::UnavailableError(
      absl::StrCat("failed to connect to all addresses; last error: ", last_error.message()));
}

absl::Status failure_of(const SubchannelStateChanged& event) {
  return absl::UnavailableError(absl::StrCat(event.address.str(), ": ", event.status.message()));
}

absl::Status health_of(const SubchannelStateChanged& event) {
  if (event.healthy) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      event.address.str(), ": ", event.status.ok() ? "unhealthy" : event.status.message()));
}

}  // namespace

// --- what comes in ---

void PickFirst::update(std::vector<Address> addresses, LbEffects& effects) {
  const std::vector<Known> before = held();
  std::vector<Address> unique;
  absl::flat_hash_map<Address, std::size_t> positions;
  for (Address& address : addresses) {
    if (positions.try_emplace(address, unique.size()).second) unique.push_back(std::move(address));
  }
  if (unique == addresses_ && !std::holds_alternative<Fresh>(state_)) return;
  addresses_ = std::move(unique);
  positions_ = std::move(positions);

  if (std::holds_alternative<Idle>(state_)) return;
  const auto* selected = std::get_if<Selected>(&state_);
  if (selected != nullptr && positions_.contains(selected->address)) return;

  Connecting next;
  if (const auto* connecting = std::get_if<Connecting>(&state_)) {
    next.reported = connecting->reported;
    next.last_error = connecting->last_error;
  }
  connect(before, std::move(next), effects);
}

void PickFirst::exit_idle(LbEffects& effects) {
  if (std::holds_alternative<Idle>(state_)) connect({}, {}, effects);
}

void PickFirst::observe(const SubchannelStateChanged& event, LbEffects& effects) {
  SIGNALBOX_INVARIANT((event.state == ConnectivityState::kReady) == (event.connection != nullptr),
                      "a subchannel has a connection exactly in READY");
  if (auto* connecting = std::get_if<Connecting>(&state_)) {
    heard(*connecting, event, effects);
  } else if (auto* selected = std::get_if<Selected>(&state_)) {
    heard(*selected, event, effects);
  }
}

void PickFirst::release_all(LbEffects& effects) {
  for (const Known& known : held())
    effects.push_back(ReleaseSubchannel{known.address});
  addresses_.clear();
  positions_.clear();
  state_ = Fresh{};
}

// --- connecting ---

// Begins a pass over addresses_. What is held already stays held, with what is known of it.
void PickFirst::connect(const std::vector<Known>& held, Connecting next, LbEffects& effects) {
  std::vector<bool> is_held(addresses_.size());
  next.states.resize(addresses_.size());
  for (const Known& known : held) {
    const auto found = positions_.find(known.address);
    if (found == positions_.end()) continue;
    is_held[found->second] = true;
    next.states[found->second] = known.state;
  }
  for (std::size_t at = 0; at < addresses_.size(); ++at) {
    if (!is_held[at]) effects.push_back(AcquireSubchannel{addresses_[at]});
    if (!next.states[at].has_value()) ++next.unheard;
  }
  for (const Known& known : held) {
    if (!positions_.contains(known.address)) effects.push_back(ReleaseSubchannel{known.address});
  }
  state_ = std::move(next);
  try_next(std::get<Connecting>(state_), effects);
}

void PickFirst::heard(Connecting& connecting,
                      const SubchannelStateChanged& event,
                      LbEffects& effects) {
  const auto found = positions_.find(event.address);
  if (found == positions_.end()) return;
  // Whichever is READY first is chosen, whoever asked for that connection (A61).
  if (event.state == ConnectivityState::kReady) return select(event, effects);

  const std::size_t at = found->second;
  const bool failed = event.state == ConnectivityState::kTransientFailure;
  if (failed) connecting.last_error = failure_of(event);
  const bool first_word = !connecting.states[at].has_value();
  connecting.states[at] = event.state;
  if (first_word) --connecting.unheard;

  if (connecting.current < addresses_.size()) {
    // News of an address whose turn has passed, or is to come, waits.
    if (first_word || at == connecting.current) try_next(connecting, effects);
    return;
  }
  if (event.state == ConnectivityState::kIdle) effects.push_back(Connect{event.address});
  if (failed && ++connecting.failures >= addresses_.size()) conclude_pass(connecting, effects);
}

// One attempt at a time. Before the first, every address is heard of: one that is READY already
// is better than any attempt.
void PickFirst::try_next(Connecting& connecting, LbEffects& effects) {
  if (connecting.unheard > 0) return;

  // In back-off counts as tried: somebody's attempt has just failed (A61).
  while (connecting.current < addresses_.size() &&
         connecting.states[connecting.current] == ConnectivityState::kTransientFailure) {
    ++connecting.current;
  }
  if (connecting.current < addresses_.size()) {
    if (connecting.states[connecting.current] == ConnectivityState::kIdle)
      effects.push_back(Connect{addresses_[connecting.current]});
    return;
  }
  // The first pass is over. Addresses that left their back-off meanwhile are due again.
  conclude_pass(connecting, effects);
  for (std::size_t at = 0; at < addresses_.size(); ++at) {
    if (connecting.states[at] == ConnectivityState::kIdle)
      effects.push_back(Connect{addresses_[at]});
  }
}

// Every address has failed (again): say why, and ask for better addresses.
void PickFirst::conclude_pass(Connecting& connecting, LbEffects& effects) {
  connecting.failures = 0;
  connecting.reported = addresses_.empty() ? absl::UnavailableError("address list is empty")
                                           : all_failed(connecting.last_error);
  effects.push_back(RequestReresolution{});
}

void PickFirst::select(const SubchannelStateChanged& event, LbEffects& effects) {
  for (const Known& known : held()) {
    if (known.address != event.address) effects.push_back(ReleaseSubchannel{known.address});
  }
  state_ = Selected{event.address, event.connection, health_of(event)};
}

// --- selected ---

void PickFirst::heard(Selected& selected, const SubchannelStateChanged& event, LbEffects& effects) {
  if (event.address != selected.address) return;
  if (event.state == ConnectivityState::kReady) {
    selected.connection = event.connection;
    selected.health = health_of(event);
    return;
  }
  effects.push_back(RequestReresolution{});
  if (when_lost_ == WhenLost::kReconnect) {
    Connecting next;
    next.last_error = failure_of(event);
    return connect({Known{event.address, event.state}}, std::move(next), effects);
  }
  effects.push_back(ReleaseSubchannel{event.address});
  state_ = Idle{};
}

// --- questions ---

std::vector<PickFirst::Known> PickFirst::held() const {
  std::vector<Known> held;
  if (const auto* selected = std::get_if<Selected>(&state_)) {
    held.push_back(Known{selected->address, ConnectivityState::kReady});
  } else if (const auto* connecting = std::get_if<Connecting>(&state_)) {
    for (std::size_t at = 0; at < addresses_.size(); ++at)
      held.push_back(Known{addresses_[at], connecting->states[at]});
  }
  return held;
}

ConnectivityState PickFirst::state() const {
  return std::visit(Overloaded{
                        [](const Fresh&) { return ConnectivityState::kConnecting; },
                        [](const Idle&) { return ConnectivityState::kIdle; },
                        [](const Connecting& connecting) {
                          return connecting.reported.ok() ? ConnectivityState::kConnecting
                                                          : ConnectivityState::kTransientFailure;
                        },
                        [](const Selected& selected) {
                          return selected.health.ok() ? ConnectivityState::kReady
                                                      : ConnectivityState::kTransientFailure;
                        },
                    },
                    state_);
}

absl::Status PickFirst::status() const {
  if (const auto* connecting = std::get_if<Connecting>(&state_)) return connecting->reported;
  if (const auto* selected = std::get_if<Selected>(&state_)) return selected->health;
  return absl::OkStatus();
}

bool PickFirst::heard_all() const {
  const auto* connecting = std::get_if<Connecting>(&state_);
  return connecting == nullptr || connecting->unheard == 0;
}

ConnectionPtr PickFirst::connection() const {
  if (state() != ConnectivityState::kReady) return nullptr;
  return std::get<Selected>(state_).connection;
}

}  // namespace signalbox::lb
