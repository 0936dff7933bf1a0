// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/load_stream_core.hpp"

#include <algorithm>

#include "messages/pick.hpp"

namespace signalbox::lb {

LoadStreamEffects LoadStreamCore::step(const LoadStreamEvent& event, Instant now) {
  LoadStreamEffects effects;
  std::visit([&](const auto& it) { on(it, now, effects); }, event);
  return effects;
}

void LoadStreamCore::on(const LoadWatched& event, Instant now, LoadStreamEffects& effects) {
  periods_[event.listener] = event.period;
  suit_listeners(now, effects);
}

void LoadStreamCore::on(const LoadUnwatched& event, Instant now, LoadStreamEffects& effects) {
  periods_.erase(event.listener);
  suit_listeners(now, effects);
}

void LoadStreamCore::on(const LoadReported& event,
                        Instant /*now*/,
                        LoadStreamEffects& /*effects*/) {
  auto* const open = std::get_if<Open>(&state_);
  if (open != nullptr && open->stream == event.stream) open->has_reported = true;
}

void LoadStreamCore::on(const LoadStreamClosed& event, Instant now, LoadStreamEffects& effects) {
  const auto* const open = std::get_if<Open>(&state_);
  if (open == nullptr || open->stream != event.stream) return;
  if (event.code == absl::StatusCode::kUnimplemented) {
    state_ = Refused{};
    effects.push_back(NoteLoadStreamEnd{LoadStreamEnd::kUnimplemented});
    return;
  }
  const bool had_report = open->has_reported;
  not_before_ = open->since + next_backoff(had_report);
  effects.push_back(
      NoteLoadStreamEnd{had_report ? LoadStreamEnd::kEnded : LoadStreamEnd::kNoReport});
  open_or_wait(now, effects);
}

void LoadStreamCore::on(const LoadRetryDue& event, Instant now, LoadStreamEffects& effects) {
  const auto* const waiting = std::get_if<Waiting>(&state_);
  if (waiting == nullptr || waiting->timer != event.timer) return;
  open_or_wait(now, effects);
}

void LoadStreamCore::on(const LoadConnectionLost& /*event*/,
                        Instant /*now*/,
                        LoadStreamEffects& effects) {
  leave(effects);
  state_ = Lost{};
}

// Opens, re-opens or closes the stream as the present listeners need it (L1 of
// load_stream_core.hpp).
void LoadStreamCore::suit_listeners(Instant now, LoadStreamEffects& effects) {
  if (std::holds_alternative<Refused>(state_) || std::holds_alternative<Lost>(state_)) return;
  if (periods_.empty()) {
    leave(effects);
    state_ = Idle{};
    return;
  }
  if (std::holds_alternative<Idle>(state_)) return open_or_wait(now, effects);
  const auto* const open = std::get_if<Open>(&state_);
  if (open == nullptr || open->period == wanted_period()) return;
  leave(effects);
  state_ = Open{++number_, wanted_period(), now};
  effects.push_back(OpenLoadStream{number_, wanted_period()});
}

void LoadStreamCore::open_or_wait(Instant now, LoadStreamEffects& effects) {
  ++number_;
  if (now < not_before_) {
    state_ = Waiting{number_};
    effects.push_back(StartLoadTimer{number_, not_before_ - now});
    return;
  }
  state_ = Open{number_, wanted_period(), now};
  effects.push_back(OpenLoadStream{number_, wanted_period()});
}

// Closes the state's stream, or cancels the state's timer. The caller must then replace the state.
void LoadStreamCore::leave(LoadStreamEffects& effects) const {
  if (const auto* const open = std::get_if<Open>(&state_)) {
    effects.push_back(CloseLoadStream{open->stream});
  } else if (const auto* const waiting = std::get_if<Waiting>(&state_)) {
    effects.push_back(CancelLoadTimer{waiting->timer});
  }
}

Duration LoadStreamCore::wanted_period() const {
  return std::ranges::min_element(periods_, {}, &decltype(periods_)::value_type::second)->second;
}

Duration LoadStreamCore::next_backoff(bool had_report) {
  if (had_report) backoff_ = Duration::zero();
  const auto& [initial, multiplier, jitter, max] = options_.backoff;
  backoff_ = std::max(longer_wait(backoff_, multiplier, max), initial);
  return jittered(backoff_, jitter, chance_of(draw(options_.seed, Salt::kEndpoint, number_)));
}

}  // namespace signalbox::lb
