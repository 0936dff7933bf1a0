// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/pick_first_core.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "lb/leaf/address_order.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

const char kTimer[] = "attempt/";

// A failure with the address in its text, once: the connector's text may have the address already.
absl::Status failure_at(const Address& address, absl::string_view why) {
  const std::string spaced = absl::StrCat(" ", why);
  const bool is_named = absl::StrContains(spaced, absl::StrCat(" ", address.str(), " ")) ||
                        absl::StrContains(spaced, absl::StrCat(" ", address.str(), ":"));
  return absl::UnavailableError(is_named ? std::string(why)
                                         : absl::StrCat(address.str(), ": ", why));
}

absl::Status failure_of(const SubchannelStateChanged& event) {
  return failure_at(event.address, event.status.message());
}

}  // namespace

PickFirst::PickFirst(WhenLost when_lost,
                     Duration attempt_delay,
                     Health health,
                     std::uint64_t first_timer)
    : when_lost_(when_lost),
      health_(health),
      attempt_delay_(std::clamp(attempt_delay, kShortestAttemptDelay, kLongestAttemptDelay)),
      timers_(first_timer) {}

// --- updates and events ---

void PickFirst::update(std::vector<Address> addresses, LbEffects& effects) {
  std::vector<Address> ordered = interleave_families(std::move(addresses));
  const bool is_first = std::holds_alternative<Fresh>(state_);
  if (std::ranges::equal(ordered, addresses_) && !is_first) return;
  const std::vector<Known> before = held();
  set_addresses(std::move(ordered));

  if (std::holds_alternative<Idle>(state_)) return;
  const auto* selected = std::get_if<Selected>(&state_);
  if (selected != nullptr && position_of(selected->address).has_value()) return;

  Connecting next;
  if (const auto* connecting = pass()) {
    next.reported = connecting->reported;
  }
  connect(before, std::move(next), effects);
}

void PickFirst::exit_idle(LbEffects& effects) {
  if (std::holds_alternative<Idle>(state_)) connect({}, {}, effects);
}

void PickFirst::observe(const SubchannelStateChanged& event, LbEffects& effects) {
  SIGNALBOX_INVARIANT((event.state == ConnectivityState::kReady) == (event.connection != nullptr),
                      "a subchannel has a connection exactly in READY");
  if (auto* connecting = pass()) {
    heard(*connecting, event, effects);
  } else if (auto* selected = std::get_if<Selected>(&state_)) {
    heard(*selected, event, effects);
  }
}

// Timers are never cancelled, so a timer that is out of date is ignored: the state is no longer
// Connecting, the timer's generation is old, or `timed` is unset.
void PickFirst::fire(const TimerId& timer, LbEffects& effects) {
  auto* connecting = pass();
  if (connecting == nullptr || timer.generation != timers_) return;
  if (std::exchange(connecting->timed, std::nullopt)) take_turns(*connecting, effects);
}

Address PickFirst::address_of(const TimerId& timer) {
  absl::string_view name = timer.name;
  return absl::ConsumePrefix(&name, kTimer) ? Address(std::string(name)) : Address();
}

void PickFirst::release_all(LbEffects& effects) {
  for (const Known& known : held())
    effects.push_back(ReleaseSubchannel{known.address});
  set_addresses({});
  state_ = Fresh{};
}

// --- state Connecting ---

// Begins a pass over addresses_. Addresses that were held before keep their subchannel and its
// state.
void PickFirst::connect(const std::vector<Known>& held, Connecting next, LbEffects& effects) {
  std::vector<bool> is_held(addresses_.size());
  next.attempts.resize(addresses_.size());
  next.awaited = addresses_.size();
  for (const Known& known : held) {
    const auto at = position_of(known.address);
    if (!at.has_value()) continue;
    is_held[*at] = true;
    next.attempts[*at] = {known.state, known.begun, false, known.error};
    if (known.timed) next.timed = at;
    if (known.failed_last) next.last_failed = at;
  }
  for (std::size_t at = 0; at < addresses_.size(); ++at) {
    if (!is_held[at]) effects.push_back(AcquireSubchannel{addresses_[at]});
    if (!next.attempts[at].state.has_value()) ++next.unheard;
  }
  for (const Known& known : held) {
    if (!position_of(known.address)) effects.push_back(ReleaseSubchannel{known.address});
  }
  take_turns(*state_.emplace<ConnectingPtr>(std::make_unique<Connecting>(std::move(next))),
             effects);
}

void PickFirst::heard(Connecting& connecting,
                      const SubchannelStateChanged& event,
                      LbEffects& effects) {
  const auto at = position_of(event.address);
  if (!at.has_value()) return;
  // The first READY address is selected, even if another policy's attempt connected it (A61).
  if (event.state == ConnectivityState::kReady) return select(event, effects);

  Attempt& attempt = connecting.attempts[*at];
  const bool failed = event.state == ConnectivityState::kTransientFailure;
  const bool is_idle = event.state == ConnectivityState::kIdle;
  if (failed) {
    attempt.error = failure_of(event);
    connecting.last_failed = at;
  }
  const bool first_report = !attempt.state.has_value();
  attempt.state = event.state;
  if (first_report) {
    if (--connecting.unheard == 0) take_turns(connecting, effects);
    return;
  }
  if (connecting.awaited == 0) {
    if (is_idle) effects.push_back(Connect{event.address});
    if (failed && ++connecting.failures >= addresses_.size()) report_failure(connecting, effects);
    return;
  }
  // If it is not the address's turn yet, or the address has failed in this pass, the report only
  // changes `state`, `error` and `last_failed`.
  if (*at >= connecting.turns || attempt.failed) return;
  if (is_idle) effects.push_back(Connect{event.address});  // The attempt ended without an error.
  if (!failed) return;
  attempt.failed = true;
  --connecting.awaited;
  const bool was_newest = *at + 1 == connecting.turns;
  if (was_newest) connecting.timed = std::nullopt;
  if (was_newest || connecting.awaited == 0) take_turns(connecting, effects);
}

// Gives addresses their turn, one after another, until there is an attempt to wait for. Begins only
// when every address has reported its state: an address that is READY already needs no attempt.
void PickFirst::take_turns(Connecting& connecting, LbEffects& effects) {
  if (connecting.unheard > 0) return;
  while (connecting.turns < addresses_.size()) {
    const std::size_t at = connecting.turns++;
    Attempt& attempt = connecting.attempts[at];
    if (attempt.state == ConnectivityState::kTransientFailure) {
      // An address in back-off counts as tried: the last attempt at it has failed (A61).
      attempt.failed = true;
      --connecting.awaited;
      continue;
    }
    const bool is_under_way = attempt.state == ConnectivityState::kConnecting;
    // An attempt that was begun in an earlier pass runs on, and its delay is not restarted (I4 of
    // pick_first_core.hpp).
    if (std::exchange(attempt.begun, true) && is_under_way) {
      if (connecting.timed.has_value()) return;
      continue;
    }
    if (!is_under_way) effects.push_back(Connect{addresses_[at]});
    return give_time(connecting, at, effects);
  }
  if (connecting.awaited == 0) end_pass(connecting, effects);
}

// Starts the delay after which the next address is tried too. After the last address none is
// needed.
void PickFirst::give_time(Connecting& connecting, std::size_t at, LbEffects& effects) {
  connecting.timed = std::nullopt;
  if (at + 1 == addresses_.size()) return;
  connecting.timed = at;
  const TimerId timer{absl::StrCat(kTimer, addresses_[at].str()), ++timers_};
  effects.push_back(StartTimer{timer, attempt_delay_});
}

// Every address has failed. Those that are IDLE again, because their back-off is over, are tried
// again at once.
void PickFirst::end_pass(Connecting& connecting, LbEffects& effects) {
  report_failure(connecting, effects);
  for (std::size_t at = 0; at < addresses_.size(); ++at) {
    if (connecting.attempts[at].state == ConnectivityState::kIdle)
      effects.push_back(Connect{addresses_[at]});
  }
}

// Reports TRANSIENT_FAILURE with its reason, and requests re-resolution. Called when every address
// has failed, and again after each further N failures, N being the number of addresses.
void PickFirst::report_failure(Connecting& connecting, LbEffects& effects) {
  connecting.failures = 0;
  connecting.reported = failure_of_all(connecting);
  effects.push_back(RequestReresolution{});
}

// The status when every address has failed. With a single address it is the address's own error.
// If a new list has left out the address that failed last, another address's error is shown.
absl::Status PickFirst::failure_of_all(const Connecting& connecting) const {
  if (addresses_.empty()) return absl::UnavailableError("address list is empty");
  const std::size_t shown = connecting.last_failed.value_or(addresses_.size() - 1);
  const absl::Status& error = connecting.attempts[shown].error;
  if (addresses_.size() == 1) return error;
  return absl::UnavailableError(absl::StrCat(
      "failed to connect to all ", addresses_.size(), " addresses; last error: ", error.message()));
}

void PickFirst::select(const SubchannelStateChanged& event, LbEffects& effects) {
  for (const Known& known : held()) {
    if (known.address != event.address) effects.push_back(ReleaseSubchannel{known.address});
  }
  state_ = Selected{event.address, event.connection, health_of(event)};
}

// --- state Selected ---

void PickFirst::heard(Selected& selected, const SubchannelStateChanged& event, LbEffects& effects) {
  if (event.address != selected.address) return;
  if (event.state == ConnectivityState::kReady) {
    selected.connection = event.connection;
    selected.health = health_of(event);
    return;
  }
  effects.push_back(RequestReresolution{});
  // A subchannel without its last connection is IDLE, unless it was making another one (A105-15),
  // or the loss counts as a failed attempt (B10 of subchannel_core.hpp).
  if (when_lost_ == WhenLost::kReconnect || event.state != ConnectivityState::kIdle) {
    Known lost{event.address, event.state};
    lost.error = failure_of(event);
    lost.failed_last = true;
    return connect({lost}, {}, effects);
  }
  effects.push_back(ReleaseSubchannel{event.address});
  state_ = Idle{};
}

// --- helpers without effects ---

PickFirst::Connecting* PickFirst::pass() {
  auto* const connecting = std::get_if<ConnectingPtr>(&state_);
  return connecting == nullptr ? nullptr : connecting->get();
}

const PickFirst::Connecting* PickFirst::pass() const {
  const auto* const connecting = std::get_if<ConnectingPtr>(&state_);
  return connecting == nullptr ? nullptr : connecting->get();
}

absl::Status PickFirst::health_of(const SubchannelStateChanged& event) const {
  if (event.healthy || health_ == Health::kIgnored) return absl::OkStatus();
  return failure_at(event.address, event.status.ok() ? "unhealthy" : event.status.message());
}

// Sets the addresses and their index. A single address, the usual case, needs no index.
void PickFirst::set_addresses(std::vector<Address> addresses) {
  addresses_.assign(std::make_move_iterator(addresses.begin()),
                    std::make_move_iterator(addresses.end()));
  positions_.clear();
  if (addresses_.size() < 2) return;
  for (std::size_t at = 0; at < addresses_.size(); ++at)
    positions_.emplace(addresses_[at], at);
}

std::optional<std::size_t> PickFirst::position_of(const Address& address) const {
  if (addresses_.size() == 1 && addresses_.front() == address) return 0;
  const auto found = positions_.find(address);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<PickFirst::Known> PickFirst::held() const {
  std::vector<Known> held;
  if (const auto* selected = std::get_if<Selected>(&state_)) {
    held.push_back(Known{selected->address, ConnectivityState::kReady});
  } else if (const auto* connecting = pass()) {
    for (std::size_t at = 0; at < addresses_.size(); ++at) {
      const Attempt& attempt = connecting->attempts[at];
      held.push_back(Known{addresses_[at],
                           attempt.state,
                           attempt.begun,
                           connecting->timed == at,
                           attempt.error,
                           connecting->last_failed == at});
    }
  }
  return held;
}

ConnectivityState PickFirst::state() const {
  return std::visit(Overloaded{
                        [](const Fresh&) { return ConnectivityState::kConnecting; },
                        [](const Idle&) { return ConnectivityState::kIdle; },
                        [](const ConnectingPtr& connecting) {
                          return connecting->reported.ok() ? ConnectivityState::kConnecting
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
  if (const auto* connecting = pass()) return connecting->reported;
  if (const auto* selected = std::get_if<Selected>(&state_)) return selected->health;
  return absl::OkStatus();
}

bool PickFirst::heard_all() const {
  const auto* connecting = pass();
  return connecting == nullptr || connecting->unheard == 0;
}

ConnectionPtr PickFirst::connection() const {
  if (state() != ConnectivityState::kReady) return nullptr;
  return std::get<Selected>(state_).connection;
}

}  // namespace signalbox::lb
