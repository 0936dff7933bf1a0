// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/subchannel_core.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lb/subchannel/disconnect_reason.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

const char kSharedTimer[] = "streams";

}  // namespace

// The handlers ignore events that do not fit the state. Such an event is no error: for example, the
// result of an abandoned attempt may come late. A connection from such an attempt is dropped (B3 of
// subchannel_core.hpp).

SubchannelCore::SubchannelCore(SubchannelOptions options)
    : options_(std::move(options)),
      max_connections_(
          std::clamp(options_.settings->max_connections, 1U, options_.most_connections)) {}

SubchannelEffects SubchannelCore::step(const SubchannelEvent& event, Instant now) {
  SubchannelEffects effects;
  std::visit([&](const auto& it) { on(it, now, effects); }, event);
  return effects;
}

void SubchannelCore::on(const ConnectRequested& event, Instant now, SubchannelEffects& effects) {
  if (!open_.empty() || !std::holds_alternative<Idle>(attempting_)) return;
  connect(event.may_hurry, now, effects);
}

void SubchannelCore::on(const Connected& event, Instant now, SubchannelEffects& effects) {
  SIGNALBOX_INVARIANT(event.connection != nullptr, "Connected brings a connection");
  const auto* const connecting = std::get_if<Connecting>(&attempting_);
  if (connecting == nullptr || event.attempt != attempt_) {
    const bool reported_twice =
        std::ranges::find(open_, event.attempt, &Open::attempt) != open_.end();
    if (!reported_twice) effects.push_back(DropConnection{event.attempt});
    return;
  }
  has_been_ready_ = true;
  open_.push_back({event.attempt,
                   event.connection,
                   connecting->is_alone,
                   now + std::max(connecting->backoff, options_.backoff.initial),
                   connecting->retry_at,
                   std::exchange(backoff_, Ticks::zero())});
  attempting_ = Idle{};
  if (has_lanes_) offer(open_.back(), effects);
  effects.push_back(Observe{ConnectionAttempted{options_.settings->cluster, true}});
  follow(effects);
}

void SubchannelCore::on(const ConnectFailed& event, Instant now, SubchannelEffects& effects) {
  const auto* connecting = std::get_if<Connecting>(&attempting_);
  if (connecting == nullptr || event.attempt != attempt_) return;
  early_end_.reset();
  effects.push_back(Observe{ConnectionAttempted{options_.settings->cluster, false}});
  back_off(connecting->retry_at,
           event.status.ok() ? absl::UnavailableError("connection attempt failed") : event.status,
           now,
           effects);
  follow(effects);
}

void SubchannelCore::on(const ConnectionClosed& event, Instant now, SubchannelEffects& effects) {
  const auto found = std::ranges::find(open_, event.attempt, &Open::attempt);
  if (found == open_.end()) return;
  const Open closed = std::move(*found);
  open_.erase(found);
  if (note_end(closed, now)) {
    backoff_ = std::max(backoff_, closed.backoff);
    if (std::holds_alternative<Idle>(attempting_))
      back_off(closed.retry_at, event.status, now, effects);
  }
  if (has_lanes_) effects.push_back(WithdrawStreams{event.attempt});
  effects.push_back(DropConnection{event.attempt});
  effects.push_back(Observe{
      ConnectionLost{options_.settings->cluster, disconnect_reason(event.status.message())}});
  follow(effects);
}

void SubchannelCore::on(const StreamsWanted& /*event*/, Instant now, SubchannelEffects& effects) {
  if (may_grow()) connect(/*may_hurry=*/false, now, effects);
  ask_again(effects);
}

void SubchannelCore::on(const MaxConnectionsChanged& event,
                        Instant /*now*/,
                        SubchannelEffects& effects) {
  max_connections_ = std::clamp(event.max_connections, 1U, options_.most_connections);
  follow(effects);
}

void SubchannelCore::on(const TimerFired& event, Instant /*now*/, SubchannelEffects& effects) {
  if (event.timer.name == kSharedTimer) {
    asks_again_ = false;
    if (has_lanes_) effects.push_back(AskForDemand{});
    return;
  }
  const auto* backoff = std::get_if<Backoff>(&attempting_);
  if (backoff == nullptr || event.timer != backoff->timer) return;
  attempting_ = Idle{};
  follow(effects);
}

void SubchannelCore::connect(bool may_hurry, Instant now, SubchannelEffects& effects) {
  const bool is_alone = max_connections_ > 1;
  const Duration backoff = next_backoff(may_hurry);
  attempting_ = Connecting{backoff, now + backoff, is_alone};
  effects.push_back(OpenConnection{++attempt_, options_.settings->connect_timeout, is_alone});
  follow(effects);
}

// Whether calls that wait for a stream get another connection now (B6 of subchannel_core.hpp).
bool SubchannelCore::may_grow() const {
  return has_lanes_ && !open_.empty() && open_.size() < max_connections_ &&
         std::holds_alternative<Idle>(attempting_);
}

bool SubchannelCore::needs_lanes() const {
  if (open_.size() != 1) return open_.size() > 1;
  return max_connections_ > 1 && open_.front().connection->stream_limit().has_value();
}

void SubchannelCore::offer(const Open& open, SubchannelEffects& effects) const {
  effects.push_back(OfferStreams{open.attempt, open.connection, !open.is_counted});
}

// After every change: offers or withdraws all streams (B7), reports the state (B1), and asks
// whether calls want another connection (B6).
void SubchannelCore::follow(SubchannelEffects& effects) {
  if (needs_lanes() != has_lanes_) {
    has_lanes_ = !has_lanes_;
    for (const Open& open : open_) {
      if (has_lanes_) offer(open, effects);
      if (!has_lanes_) effects.push_back(WithdrawStreams{open.attempt});
    }
  }
  // From now on calls may use the connections without a stream, and outlast the next offer.
  if (!has_lanes_) {
    for (Open& open : open_)
      open.is_counted = false;
  }
  notify(effects);
  if (may_grow()) effects.push_back(AskForDemand{});
}

// Calls wait for a stream. If a call that took none could free one, asks again soon (B9 of
// subchannel_core.hpp).
void SubchannelCore::ask_again(SubchannelEffects& effects) {
  const bool is_shared =
      has_lanes_ && !std::ranges::all_of(open_, [](const Open& open) { return open.is_counted; });
  if (!is_shared || std::exchange(asks_again_, true)) return;
  effects.push_back(StartTimer{TimerId{kSharedTimer, 0}, kSharedPause});
}

// Notes whether the connection ended early. Returns whether its end counts as a failed attempt
// (B10).
bool SubchannelCore::note_end(const Open& closed, Instant now) {
  const bool is_early = now < closed.early_until;
  const bool is_later = early_end_ && closed.attempt > *early_end_;
  if (is_early) {
    early_end_ = attempt_;
  } else if (is_later) {
    early_end_.reset();
  }
  return is_early && is_later;
}

void SubchannelCore::back_off(Instant until,
                              absl::Status cause,
                              Instant now,
                              SubchannelEffects& effects) {
  const TimerId timer{"backoff", attempt_};
  attempting_ = Backoff{timer, std::move(cause)};
  effects.push_back(StartTimer{timer, std::max(Duration::zero(), Duration(until - now))});
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
  if (!open_.empty()) return ConnectivityState::kReady;
  return std::visit(Overloaded{
                        [](const Idle&) { return ConnectivityState::kIdle; },
                        [](const Connecting&) { return ConnectivityState::kConnecting; },
                        [](const Backoff&) { return ConnectivityState::kTransientFailure; },
                    },
                    attempting_);
}

// Reports the state, unless all of the report is as in the last one.
void SubchannelCore::notify(SubchannelEffects& effects) {
  const ConnectivityState now = state();
  const Connection* const oldest = open_.empty() ? nullptr : open_.front().connection.get();
  const bool is_known =
      now == reported_ && oldest == reported_connection_ && has_lanes_ == reported_lanes_;
  if (is_known) return;
  reported_ = now;
  reported_connection_ = oldest;
  reported_lanes_ = has_lanes_;
  SubchannelStateChanged change;
  change.address = options_.address;
  change.state = now;
  if (!open_.empty()) change.connection = open_.front().connection;
  const auto* backoff = std::get_if<Backoff>(&attempting_);
  if (open_.empty() && backoff != nullptr) change.status = backoff->cause;
  effects.push_back(NotifyState{std::move(change), has_lanes_});
}

}  // namespace signalbox::lb
