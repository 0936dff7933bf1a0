// SPDX-License-Identifier: Apache-2.0
#include "xds/client/ads_session.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"

namespace signalbox::xds {

AdsSession::AdsSession(AdsSessionOptions options)
    : options_(std::move(options)), pace_(options_.pace, options_.seed) {
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

void AdsSession::on(const AdsBytesReceived& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != event.stream) return;
  const auto response = options_.decode(event.bytes);
  if (absl::IsUnimplemented(response.status())) return;  // A type that is none of ours.
  if (!response.ok()) {
    effects_.emplace_back(CloseStream{live->stream});
    report_lost(*live);
    refuse(response.status(), now);
    return;
  }
  note_answer(*live);
  if (!live->asked.contains(response->received.type)) return;  // S4: nothing to answer with.
  answer(*live, *response);
  effects_.emplace_back(response->received);
}

void AdsSession::on(const AdsStreamClosed& event, Instant now) {
  const auto* live = std::get_if<Live>(&state_);
  const auto* opening = std::get_if<Opening>(&state_);
  const bool ours = (live != nullptr && live->stream == event.stream) ||
                    (opening != nullptr && opening->stream == event.stream);
  if (!ours) return;
  if (live != nullptr) report_lost(*live);
  if (absl::IsResourceExhausted(event.status)) {
    refuse(event.status, now);
    return;
  }
  if (live == nullptr || !live->answered) report_failure(event.status);
  leave(StreamPace::Ending::kByServer, now);
}

void AdsSession::on(const TimerFired& event, Instant now) {
  if (auto* live = std::get_if<Live>(&state_)) send_held(*live, event.timer);
  const auto* waiting = std::get_if<Waiting>(&state_);
  if (waiting == nullptr || waiting->timer != event.timer) return;
  if (wanted_.empty())
    state_ = Idle{};
  else
    open(now);
}

// --- the stream -------------------------------------------------------------

void AdsSession::open(Instant now) {
  pace_.opened(now);
  state_ = Opening{++streams_};
  effects_.emplace_back(OpenStream{streams_});
}

// The stream is over: into Waiting for as long as the server is to be left alone.
void AdsSession::leave(StreamPace::Ending ending, Instant now) {
  const Duration wait = pace_.closed(ending, now);
  if (wait > Duration::zero()) {
    state_ = Waiting{start_timer("reopen", wait)};
    return;
  }
  state_ = Idle{};
  if (!wanted_.empty()) open(now);
}

// S8: there is nothing to answer with, and whatever else the stream brings would hide the error.
void AdsSession::refuse(const absl::Status& why, Instant now) {
  effects_.emplace_back(ResponseRefused{absl::IsResourceExhausted(why) ? RejectionReason::kLimit
                                                                       : RejectionReason::kParse});
  report_failure(why);
  leave(StreamPace::Ending::kRefused, now);
}

TimerId AdsSession::start_timer(const char* name, Duration delay) {
  TimerId timer{name, ++timers_};
  effects_.emplace_back(StartTimer{timer, delay});
  return timer;
}

// --- requests ---------------------------------------------------------------

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
  // A NACK that waits goes along: without it the request would pass for something else. What comes
  // next answers another question, and repeats nothing.
  const std::string held = asked.held ? asked.refused->detail : "";
  asked.held.reset();
  asked.refused.reset();
  send(live, type, held, first_of_stream ? options_.node : std::string());
  effects_.emplace_back(SubscriptionSent{type, names});
}

void AdsSession::answer(Live& live, const DecodedResponse& response) {
  const ResourceType type = response.received.type;
  Asked& asked = live.asked.at(type);
  asked.nonce = response.nonce;
  if (response.nack_detail.empty()) {
    versions_[type] = response.received.version;
    asked.refused.reset();
    asked.held.reset();
    send(live, type);
    return;
  }
  const bool is_repeated = asked.refused && asked.refused->detail == response.nack_detail &&
                           asked.refused->version == response.received.version;
  if (is_repeated) {  // S7; one that waits already will carry the new nonce.
    if (!asked.held) asked.held = start_timer("nack", asked.refused->brake.next());
    return;
  }
  asked.held.reset();
  asked.refused.emplace(Refused{response.received.version,
                                response.nack_detail,
                                Backoff(options_.nack_backoff, options_.seed)});
  send(live, type, response.nack_detail);
}

void AdsSession::send_held(Live& live, const TimerId& timer) {
  for (auto& [type, asked] : live.asked) {
    if (asked.held != timer) continue;
    asked.held.reset();
    send(live, type, asked.refused->detail);
    return;
  }
}

void AdsSession::send(const Live& live,
                      ResourceType type,
                      const std::string& rejection,
                      const std::string& node) {
  const Asked& asked = live.asked.at(type);
  DiscoveryRequest request;
  request.type = type;
  request.version = versions_[type];
  request.nonce = asked.nonce;
  request.names = asked.names;
  request.node = node;
  request.rejection = rejection;
  if (asked.names.empty()) versions_.erase(type);  // S6: on the wire once more, and let go.
  effects_.emplace_back(SendBytes{live.stream, encode(request)});
}

// --- what the client is told ------------------------------------------------

void AdsSession::note_answer(Live& live) {
  live.answered = true;
  pace_.answered();
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
