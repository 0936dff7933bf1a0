// SPDX-License-Identifier: Apache-2.0
#include "xds/client/ads_session.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"

namespace signalbox::xds {

AdsSession::AdsSession(AdsSessionOptions options)
    : options_(std::move(options)), backoff_(options_.backoff, options_.seed) {
  SIGNALBOX_INVARIANT(options_.decode != nullptr, "an ADS session is given a decoder");
}

AdsSessionEffects AdsSession::step(const AdsSessionEvent& event, Instant now) {
  std::visit([&](const auto& what) { on(what, now); }, event);
  return std::exchange(effects_, {});
}

// --- events -----------------------------------------------------------------

void AdsSession::on(const Subscribe& event, Instant now) {
  if (event.names.empty())
    wanted_.erase(event.type);
  else
    wanted_[event.type] = event.names;

  if (auto* live = std::get_if<Live>(&state_))
    ask(*live, event.type);
  else if (event.names.empty())
    versions_.erase(event.type);  // S6: there is no stream to say so on.
  else if (std::holds_alternative<Idle>(state_) && !wanted_.empty())
    open(now);
}

void AdsSession::on(const AdsStreamOpened& event, Instant /*now*/) {
  const auto* opening = std::get_if<Opening>(&state_);
  if (opening == nullptr || opening->stream != event.stream) return;
  auto& live = state_.emplace<Live>();
  live.stream = event.stream;
  for (const auto& [type, names] : wanted_)
    ask(live, type);
}

void AdsSession::on(const AdsBytesReceived& event, Instant /*now*/) {
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != event.stream) return;
  const auto response = options_.decode(event.bytes);
  if (!response.ok()) return;
  note_answer(*live);
  if (!live->asked.contains(response->received.type)) return;  // S4: nothing to answer with.
  answer(*live, *response);
  effects_.emplace_back(response->received);
}

void AdsSession::on(const AdsStreamClosed& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  auto* opening = std::get_if<Opening>(&state_);
  const bool ours = (live != nullptr && live->stream == event.stream) ||
                    (opening != nullptr && opening->stream == event.stream);
  if (!ours) return;

  if (live != nullptr) report_lost(*live);
  if (live != nullptr && live->answered) {
    wait(Duration::zero(), now);
  } else {
    report_failure(event.status);
    wait(backoff_.next(), now);
  }
}

void AdsSession::on(const TimerFired& event, Instant now) {
  const auto* waiting = std::get_if<Waiting>(&state_);
  if (waiting == nullptr || waiting->timer != event.timer) return;
  if (wanted_.empty())
    state_ = Idle{};
  else
    open(now);
}

// --- the stream -------------------------------------------------------------

void AdsSession::open(Instant now) {
  last_opened_ = now;
  state_ = Opening{++streams_};
  effects_.emplace_back(OpenStream{streams_});
}

// Into Waiting, for `delay` or until S1 allows the next stream, whichever is longer.
void AdsSession::wait(Duration delay, Instant now) {
  delay = std::max(delay, last_opened_ + options_.min_interval - now);
  if (delay <= Duration::zero()) {
    state_ = Idle{};
    if (!wanted_.empty()) open(now);
    return;
  }
  const TimerId timer{"reopen", ++timers_};
  state_ = Waiting{timer};
  effects_.emplace_back(StartTimer{timer, delay});
}

// Makes what the stream was asked for of `type` what is wanted.
void AdsSession::ask(Live& live, ResourceType type) {
  const auto wanted = wanted_.find(type);
  const auto names = wanted == wanted_.end() ? std::set<std::string>{} : wanted->second;
  const auto before = live.asked.find(type);
  const bool unchanged = before == live.asked.end() ? names.empty() : before->second.names == names;
  if (unchanged) return;

  const bool first_of_stream = live.asked.empty();
  Asked& asked = live.asked[type];
  asked.names = names;
  DiscoveryRequest request;
  request.type = type;
  request.version = versions_[type];
  request.nonce = asked.nonce;
  request.names = names;
  if (first_of_stream) request.node = options_.node;
  if (names.empty()) versions_.erase(type);
  effects_.emplace_back(SendBytes{live.stream, encode(request)});
  effects_.emplace_back(SubscriptionSent{type, names});
}

void AdsSession::answer(Live& live, const DecodedResponse& response) {
  const ResourceType type = response.received.type;
  Asked& asked = live.asked.at(type);
  asked.nonce = response.nonce;
  if (response.nack_detail.empty()) versions_[type] = response.received.version;
  DiscoveryRequest request;
  request.type = type;
  request.version = versions_[type];
  request.nonce = asked.nonce;
  request.names = asked.names;
  if (asked.names.empty()) versions_.erase(type);  // S6: taken from the wire, and let go.
  request.rejection = response.nack_detail;
  effects_.emplace_back(SendBytes{live.stream, encode(request)});
}

// --- what the client is told ------------------------------------------------

void AdsSession::note_answer(Live& live) {
  live.answered = true;
  backoff_.reset();
  if (!std::exchange(failing_, false)) return;
  effects_.emplace_back(ServerStatusChanged{absl::OkStatus()});
}

// Nothing is asked of any server while there is no stream.
void AdsSession::report_lost(const Live& live) {
  for (const auto& [type, asked] : live.asked) {
    if (!asked.names.empty()) effects_.emplace_back(SubscriptionSent{type, {}});
  }
}

void AdsSession::report_failure(const absl::Status& status) {
  failing_ = true;
  const absl::string_view reason =
      status.message().empty() ? "stream closed without a response" : status.message();
  effects_.emplace_back(ServerStatusChanged{
      absl::UnavailableError(absl::StrCat("xDS server ", options_.server, ": ", reason))});
}

}  // namespace signalbox::xds
