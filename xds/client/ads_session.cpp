// SPDX-License-Identifier: Apache-2.0
#include "xds/client/ads_session.hpp"

#include <algorithm>
#include <iterator>
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

  if (auto* live = std::get_if<Live>(&state_)) {
    record_change(*live, event.type);
    ask(*live, event.type, now);
  } else if (event.names.empty()) {
    versions_.erase(event.type);  // S6: there is no stream on which a request could unsubscribe.
  } else if (std::holds_alternative<Idle>(state_) && !wanted_.empty()) {
    open(now);
  }
}

void AdsSession::on(const AdsStreamOpened& event, Instant now) {
  const auto* opening = std::get_if<Opening>(&state_);
  if (opening == nullptr || opening->stream != event.stream) return;
  auto& live = state_.emplace<Live>();
  live.stream = event.stream;
  for (const auto& [type, names] : wanted_)
    ask(live, type, now);
}

void AdsSession::on(const AdsBytesReceived& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != event.stream) return;
  SIGNALBOX_INVARIANT(!live->decoded, "the next response comes after ReadNext");
  live->response_bytes = event.bytes.size();
  live->response_at = now;
  decode(options_.decode(event.bytes), now);
}

// Decodes the first part of a response. A timer of zero length starts each further part (S12).
void AdsSession::decode(Decoding decoding, Instant now) {
  if (auto response = decoding()) return take(*std::move(response), now);
  const TimerId next_part = start_timer("decode", Duration::zero());
  std::get<Live>(state_).decoded.emplace(Decoded{std::move(decoding), next_part, std::nullopt});
}

void AdsSession::go_on_decoding(Instant now) {
  auto& decoded = std::get<Live>(state_).decoded;
  auto response = decoded->decoding();
  if (!response) {
    decoded->next_part = start_timer("decode", Duration::zero());
    return;
  }
  const auto end = std::move(decoded->end);
  decoded.reset();
  take(*std::move(response), now);
  if (end) on(*end, now);  // Does nothing if the response has ended the stream.
}

void AdsSession::take(absl::StatusOr<DecodedResponse> response, Instant now) {
  const std::uint64_t stream = std::get<Live>(state_).stream;
  use(std::move(response), now);
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != stream) return;
  for (auto& [type, asked] : live->asked)
    // S10: `unseen` is needed only until the response is decoded. For the type of this response,
    // answer() has used `unseen`. Requests of other types had current nonces, so the server did not
    // ignore them.
    asked.unseen.clear();
  effects_.emplace_back(ReadNext{stream});
}

void AdsSession::use(absl::StatusOr<DecodedResponse> response, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  if (absl::IsUnimplemented(response.status())) return;  // The type is not supported.
  if (!response.ok()) {
    effects_.emplace_back(CloseStream{live->stream});
    report_lost(*live);
    refuse(response.status(), now);
    return;
  }
  record_answer(*live);
  if (!live->asked.contains(response->received.type)) return;  // The type was never requested.
  answer(*live, *response, now);
  response->received.bytes = live->response_bytes;
  response->received.at = live->response_at;
  effects_.emplace_back(std::move(response->received));
}

// The oldest unwritten request is written: reports its names if they are new (S11), and sends the
// type's next request if one is due (S9).
void AdsSession::on(const AdsBytesWritten& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != event.stream || live->unwritten.empty()) return;
  const ResourceType type = live->unwritten.front();
  live->unwritten.pop_front();
  Asked& asked = live->asked.at(type);
  asked.unwritten = false;
  if (asked.change) {
    const auto change = *std::exchange(asked.change, std::nullopt);
    if (!asked.answered) asked.turn.asked(change, now);
    effects_.emplace_back(SubscriptionSent{type, asked.names});
  }
  ask(*live, type, now);
}

void AdsSession::on(const AdsStreamClosed& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  const auto* opening = std::get_if<Opening>(&state_);
  const bool ours = (live != nullptr && live->stream == event.stream) ||
                    (opening != nullptr && opening->stream == event.stream);
  if (!ours) return;
  if (live != nullptr && live->decoded) {
    live->decoded->end = event;
    return;
  }
  if (live != nullptr) report_lost(*live);
  const bool had_response = live != nullptr && live->answered;
  if (absl::IsResourceExhausted(event.status)) {
    refuse(event.status, now);
    return;
  }
  if (!had_response) report_failure(event.status);
  effects_.emplace_back(StreamEnded{!had_response       ? StreamEnd::kNoResponse
                                    : event.status.ok() ? StreamEnd::kOk
                                                        : StreamEnd::kError});
  leave(StreamPace::Ending::kByServer, now);
}

void AdsSession::on(const TimerFired& event, Instant now) {
  if (auto* live = std::get_if<Live>(&state_)) {
    if (live->decoded && live->decoded->next_part == event.timer) return go_on_decoding(now);
    timer_elapsed(*live, event.timer, now);
  }
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

// The stream has ended: enters Waiting if StreamPace demands a wait.
void AdsSession::leave(StreamPace::Ending ending, Instant now) {
  const Duration wait = pace_.closed(ending, now);
  if (wait > Duration::zero()) {
    state_ = Waiting{start_timer("reopen", wait)};
    return;
  }
  state_ = Idle{};
  if (!wanted_.empty()) open(now);
}

// Reports a response that cannot be answered, and leaves the stream (S8): further responses on it
// would hide the error.
void AdsSession::refuse(const absl::Status& why, Instant now) {
  effects_.emplace_back(ResponseRefused{absl::IsResourceExhausted(why) ? RejectionReason::kLimit
                                                                       : RejectionReason::kParse});
  effects_.emplace_back(StreamEnded{StreamEnd::kError});
  report_failure(why);
  leave(StreamPace::Ending::kRefused, now);
}

TimerId AdsSession::start_timer(const char* name, Duration delay) {
  TimerId timer{name, ++timers_};
  effects_.emplace_back(StartTimer{timer, delay});
  return timer;
}

// --- requests ---------------------------------------------------------------

const std::set<std::string>& AdsSession::wanted(ResourceType type) const {
  static const std::set<std::string> none;
  const auto found = wanted_.find(type);
  return found == wanted_.end() ? none : found->second;
}

// Records the names that are unwanted now. They stay recorded even if they are wanted again before
// the next request, because the server must see that they were unwanted (S6, S10).
void AdsSession::record_change(Live& live, ResourceType type) {
  const auto found = live.asked.find(type);
  if (found == live.asked.end()) return;
  Asked& asked = found->second;
  const std::set<std::string>& names = wanted(type);
  std::ranges::set_difference(
      asked.names, names, std::inserter(asked.given_up, asked.given_up.end()));
  if (names.empty()) asked.was_empty = true;
}

// Sends the request of `type` that is due, if any: an answer, changed names, or both.
void AdsSession::ask(Live& live, ResourceType type, Instant now) {
  if (!live.asked.contains(type)) {
    if (wanted(type).empty()) return;  // S4: a first request names a resource.
    const std::string node = live.asked.empty() ? options_.node : "";
    live.asked.emplace(type, RequestTurn(options_.turn, options_.seed));
    return send(live, type, wanted(type), node);
  }
  Asked& asked = live.asked.at(type);
  if (asked.unwritten) return;
  std::set<std::string> names;  // The wanted names that this request may have (S10).
  std::ranges::set_difference(wanted(type), asked.given_up, std::inserter(names, names.end()));
  // S6: if at some time no name was wanted, the names must be requested without a version. An ACK
  // has a version. So the ACK unsubscribes from all names, and the next request asks for them.
  if (asked.answer && asked.was_empty) names.clear();
  if (!asked.answer) {
    if (names == asked.names) {
      asked.has_waited = false;
      return;
    }
    const bool adds = !std::ranges::includes(asked.names, names);
    const auto change = adds ? RequestTurn::Change::kAdds : RequestTurn::Change::kRemoves;
    if (must_wait(asked, change, now)) return;
  }
  send(live, type, std::move(names), "");
}

bool AdsSession::must_wait(Asked& asked, RequestTurn::Change change, Instant now) {
  if (asked.has_waited || !asked.turn.must_wait(change, now)) return false;
  if (!asked.waits) asked.waits = start_timer("request", asked.turn.next_wait());
  return true;
}

void AdsSession::answer(Live& live, const DecodedResponse& response, Instant now) {
  const ResourceType type = response.received.type;
  Asked& asked = live.asked.at(type);
  asked.nonce = response.nonce;
  asked.answered = true;
  asked.turn.answered();
  asked.waits.reset();
  asked.given_up.merge(asked.unseen);
  // S10: a name need not be left out of a request once the response has its resource.
  for (const ReceivedResource& resource : response.received.resources) {
    if (wanted(type).contains(resource.name)) asked.given_up.erase(resource.name);
  }
  if (response.nack_detail.empty()) {
    versions_[type] = response.received.version;
    asked.was_empty = wanted(type).empty();
    asked.refused.reset();
    asked.held.reset();
    asked.answer = "";
    return ask(live, type, now);
  }
  const bool is_repeated = asked.refused && asked.refused->detail == response.nack_detail &&
                           asked.refused->version == response.received.version;
  // S7. If a NACK is already due (asked.answer), it does not wait: it is sent with the new nonce.
  if (is_repeated && !asked.answer) {
    if (!asked.held) asked.held = start_timer("nack", asked.refused->brake.next());
    return ask(live, type, now);
  }
  asked.held.reset();
  asked.answer = response.nack_detail;
  if (!is_repeated) {
    asked.refused.emplace(Refused{response.received.version,
                                  response.nack_detail,
                                  Backoff(options_.nack_backoff, options_.seed)});
  }
  ask(live, type, now);
}

void AdsSession::timer_elapsed(Live& live, const TimerId& timer, Instant now) {
  for (auto& [type, asked] : live.asked) {
    if (asked.held == timer) {
      asked.held.reset();
      asked.answer = asked.refused->detail;
      return ask(live, type, now);
    }
    if (asked.waits == timer) {
      asked.waits.reset();
      asked.has_waited = true;
      return ask(live, type, now);
    }
  }
}

// Sends a request with everything that is due for the type. If names have changed, the request also
// carries a NACK that still waits (S7): without the NACK the server would take the request for an
// ACK. The next response then answers a different subscription, so it does not count as a
// repetition.
void AdsSession::send(Live& live,
                      ResourceType type,
                      std::set<std::string> names,
                      const std::string& node) {
  Asked& asked = live.asked.at(type);
  const bool is_changed = asked.names != names;
  if (live.decoded) {
    std::ranges::set_difference(
        asked.names, names, std::inserter(asked.unseen, asked.unseen.end()));
  }
  std::string rejection = asked.answer.value_or("");
  if (is_changed) {
    if (asked.held) rejection = asked.refused->detail;
    asked.held.reset();
    asked.refused.reset();
    const bool adds = !std::ranges::includes(asked.names, names);
    asked.change = adds ? RequestTurn::Change::kAdds : RequestTurn::Change::kRemoves;
  }
  // S6: since the last request, or since the last accepted response if that came later, there was a
  // moment when no name was wanted. So this request must have no version.
  if (asked.was_empty && !names.empty()) versions_.erase(type);
  DiscoveryRequest request;
  request.type = type;
  request.version = versions_[type];
  request.nonce = asked.nonce;
  request.names = names;
  request.node = node;
  request.rejection = std::move(rejection);
  if (names.empty()) versions_.erase(type);  // S6. This request still has the version.
  asked.names = std::move(names);
  asked.given_up.clear();
  asked.was_empty = false;
  asked.answer.reset();
  asked.waits.reset();
  asked.has_waited = false;
  asked.answered = false;
  asked.unwritten = true;
  live.unwritten.push_back(type);
  effects_.emplace_back(SendBytes{live.stream, encode(request)});
}

// --- reports to the client --------------------------------------------------

void AdsSession::record_answer(Live& live) {
  live.answered = true;
  pace_.answered();
  if (!std::exchange(failing_, false)) return;
  effects_.emplace_back(ServerStatusChanged{absl::OkStatus()});
}

// The stream has ended: reports for each type that no names are subscribed to. A type without names
// is reported too, so that the client core forgets which resources the ended stream had answered.
void AdsSession::report_lost(const Live& live) {
  for (const auto& [type, asked] : live.asked) {
    if (asked.was_empty) versions_.erase(type);  // S6: nothing can unsubscribe now.
    effects_.emplace_back(SubscriptionSent{type, {}});
  }
}

void AdsSession::report_failure(const absl::Status& status) {
  failing_ = true;
  std::string reason =
      status.message().empty() ? "stream closed without a response" : std::string(status.message());
  if (absl::IsUnimplemented(status))
    absl::StrAppend(&reason, ": UNIMPLEMENTED: is this address a control plane?");
  effects_.emplace_back(ServerStatusChanged{
      absl::UnavailableError(absl::StrCat("xDS server ", options_.server, ": ", reason))});
}

}  // namespace signalbox::xds
