// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/subchannel_core.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lb/subchannel/disconnect_reason.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {

// The handlers ignore events that do not fit the state. Such an event is no error: for example, the
// result of an abandoned attempt may come late. A connection from such an attempt is dropped (B3 of
// subchannel_core.hpp).

SubchannelEffects SubchannelCore::step(const SubchannelEvent& event, Instant now) {
  SubchannelEffects effects;
  std::visit([&](const auto& it) { on(it, now, effects); }, event);
  return effects;
}

void SubchannelCore::on(const ConnectRequested& event, Instant now, SubchannelEffects& effects) {
  if (!std::holds_alternative<Idle>(state_)) return;
  state_ = Connecting{now + next_backoff(event.may_hurry)};
  effects.push_back(OpenConnection{++attempt_, options_.settings.connect_timeout});
  notify(effects);
}

void SubchannelCore::on(const Connected& event, Instant /*now*/, SubchannelEffects& effects) {
  SIGNALBOX_INVARIANT(event.connection != nullptr, "Connected brings a connection");
  const bool awaited = event.attempt == attempt_ && std::holds_alternative<Connecting>(state_);
  if (!awaited) {
    const bool reported_twice = event.attempt == attempt_ && std::holds_alternative<Ready>(state_);
    if (!reported_twice) effects.push_back(DropConnection{event.attempt});
    return;
  }
  has_been_ready_ = true;
  backoff_ = Ticks::zero();
  state_ = Ready{event.connection};
  effects.push_back(Observe{ConnectionAttempted{options_.settings.cluster, true}});
  notify(effects);
}

void SubchannelCore::on(const ConnectFailed& event, Instant now, SubchannelEffects& effects) {
  const auto* connecting = std::get_if<Connecting>(&state_);
  if (connecting == nullptr || event.attempt != attempt_) return;
  const Duration rest = std::max(Duration::zero(), Duration(connecting->retry_at - now));
  const TimerId timer{"backoff", attempt_};
  state_ = Backoff{
      timer,
      event.status.ok() ? absl::UnavailableError("connection attempt failed") : event.status};
  effects.push_back(Observe{ConnectionAttempted{options_.settings.cluster, false}});
  effects.push_back(StartTimer{timer, rest});
  notify(effects);
}

void SubchannelCore::on(const ConnectionClosed& event,
                        Instant /*now*/,
                        SubchannelEffects& effects) {
  if (!std::holds_alternative<Ready>(state_) || event.attempt != attempt_) return;
  state_ = Idle{};
  effects.push_back(DropConnection{event.attempt});
  effects.push_back(Observe{
      ConnectionLost{options_.settings.cluster, disconnect_reason(event.status.message())}});
  notify(effects);
}

void SubchannelCore::on(const TimerFired& event, Instant /*now*/, SubchannelEffects& effects) {
  const auto* backoff = std::get_if<Backoff>(&state_);
  if (backoff == nullptr || event.timer != backoff->timer) return;
  state_ = Idle{};
  notify(effects);
}

Duration SubchannelCore::next_backoff(bool may_hurry) {
  const BackoffOptions& usual = options_.backoff;
  const bool hurries = may_hurry && has_been_ready_ && options_.lost_backoff < usual.initial;
  const Duration first = hurries ? options_.lost_backoff : usual.initial;
  const double factor = hurries ? options_.lost_multiplier : usual.multiplier;
  const Ticks longest = usual.max;
  backoff_ = std::max(longer_wait(backoff_, factor, longest), std::min(Ticks(first), longest));
  const double chance = chance_of(draw(options_.seed, Salt::kEndpoint, attempt_));
  return std::chrono::duration_cast<Duration>(jittered(backoff_, usual.jitter, chance));
}

ConnectivityState SubchannelCore::state() const {
  return std::visit(Overloaded{
                        [](const Idle&) { return ConnectivityState::kIdle; },
                        [](const Connecting&) { return ConnectivityState::kConnecting; },
                        [](const Ready&) { return ConnectivityState::kReady; },
                        [](const Backoff&) { return ConnectivityState::kTransientFailure; },
                    },
                    state_);
}

void SubchannelCore::notify(SubchannelEffects& effects) const {
  SubchannelStateChanged change;
  change.address = options_.address;
  change.state = state();
  if (const auto* ready = std::get_if<Ready>(&state_)) change.connection = ready->connection;
  if (const auto* backoff = std::get_if<Backoff>(&state_)) change.status = backoff->cause;
  effects.push_back(NotifyState{std::move(change)});
}

}  // namespace signalbox::lb
