// SPDX-License-Identifier: Apache-2.0
#include "xds/lrs/lrs_session.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace signalbox::xds {
namespace {

// The most notes that told_ remembers. Without a limit a server could fill the memory with notes.
constexpr std::size_t kMostTold = 64;
// The most unknown clusters that one note names.
constexpr std::size_t kMostNamed = 5;
// Timers of reports are due at least this far apart.
constexpr Duration kTimersApart = std::chrono::seconds(1);

std::string unknown_text(const std::set<std::string>& unknown) {
  const auto last =
      std::next(unknown.begin(), static_cast<std::ptrdiff_t>(std::min(unknown.size(), kMostNamed)));
  return absl::StrCat(
      "the server asks for the load of clusters that are not in use here, or have "
      "no lrs_server: ",
      absl::StrJoin(unknown.begin(), last, ", "),
      unknown.size() > kMostNamed ? ", …" : "");
}

}  // namespace

LrsSession::LrsSession(LrsSessionOptions options)
    : options_(std::move(options)), pace_(options_.pace, options_.seed) {}

LrsSessionEffects LrsSession::step(const LrsSessionEvent& event, Instant now) {
  std::visit([&](const auto& what) { on(what, now); }, event);
  return std::exchange(effects_, {});
}

// --- events -----------------------------------------------------------------

void LrsSession::on(const LoadReportsWanted& /*event*/, Instant now) {
  if (!std::holds_alternative<Idle>(state_)) return;
  reported_at_ = now;
  open(now);
}

void LrsSession::on(const AdsStreamOpened& event, Instant /*now*/) {
  const auto* opening = std::get_if<Opening>(&state_);
  if (opening == nullptr || opening->stream != event.stream) return;
  auto& live = state_.emplace<Live>();
  live.stream = event.stream;
  live.patience = start_timer("patience", options_.patience);
  effects_.emplace_back(SendBytes{live.stream, encode_first_load_request(options_.node)});
}

void LrsSession::on(const AdsBytesReceived& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != event.stream) return;
  auto decoded = decode_load_response(event.bytes);
  if (decoded.ok()) {
    pace_.answered();
    obey(*live, *std::move(decoded), now);
    effects_.emplace_back(ReadNext{event.stream});
    return;
  }
  effects_.emplace_back(CloseStream{live->stream});
  effects_.emplace_back(StreamEnded{StreamEnd::kError});
  fail(std::string(decoded.status().message()));
  leave(StreamPace::Ending::kRefused, now);
}

void LrsSession::on(const AdsBytesWritten& event, Instant now) {
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr || live->stream != event.stream) return;
  if (const auto* report = std::get_if<Report>(&live->unwritten)) {
    effects_.emplace_back(SettleLoad{report->reading});
    effects_.emplace_back(LoadReportSent{});
  }
  live->unwritten = Nothing{};
  if (std::exchange(live->is_due, false)) look(*live, now);
}

void LrsSession::on(const AdsStreamClosed& event, Instant now) {
  const auto* live = std::get_if<Live>(&state_);
  const auto* opening = std::get_if<Opening>(&state_);
  const bool ours = (live != nullptr && live->stream == event.stream) ||
                    (opening != nullptr && opening->stream == event.stream);
  if (!ours) return;
  const bool is_answered = live != nullptr && live->order.has_value();
  const bool is_too_large = absl::IsResourceExhausted(event.status);
  if (!is_answered || is_too_large) {
    std::string why(event.status.message());
    if (why.empty()) why = "the stream ended without a response";
    if (absl::IsUnimplemented(event.status))
      absl::StrAppend(&why, ": UNIMPLEMENTED: the server has no load reporting service");
    fail(why);
  }
  effects_.emplace_back(StreamEnded{!is_answered                         ? StreamEnd::kNoResponse
                                    : event.status.ok() && !is_too_large ? StreamEnd::kOk
                                                                         : StreamEnd::kError});
  leave(is_too_large ? StreamPace::Ending::kRefused : StreamPace::Ending::kByServer, now);
}

void LrsSession::on(const TimerFired& event, Instant now) {
  report_timers_.erase(event.timer.generation);
  if (auto* live = std::get_if<Live>(&state_)) {
    if (live->order ? now >= live->due : live->patience == event.timer) return look(*live, now);
    if (live->order) schedule(*live, now);
    return;
  }
  auto* waiting = std::get_if<Waiting>(&state_);
  if (waiting == nullptr || waiting->timer != event.timer) return;
  waiting->is_asking = true;
  effects_.emplace_back(ReadLoad{std::nullopt});
}

void LrsSession::on(const LoadRead& event, Instant now) {
  const LoadReading& reading = event.reading;
  if (const auto* waiting = std::get_if<Waiting>(&state_); waiting != nullptr) {
    if (!waiting->is_asking) return;
    if (is_wanted(reading)) {
      if (waiting->is_rest) reported_at_ = now;
      return open(now);
    }
    state_ = Idle{};
    return;
  }
  auto* live = std::get_if<Live>(&state_);
  if (live == nullptr) return;
  if (live->order) return report(*live, reading, now);
  if (!is_wanted(reading)) return rest(*live, now);
  note("the server has not said yet which load it wants; load is counted and not reported");
  live->patience = start_timer("patience", options_.patience);
}

bool LrsSession::is_wanted(const LoadReading& reading) const {
  return reading.is_in_use || (reading.is_owed && has_answered_);
}

// --- the stream -------------------------------------------------------------

void LrsSession::open(Instant now) {
  pace_.opened(now);
  state_ = Opening{++streams_};
  effects_.emplace_back(OpenStream{streams_});
}

// The stream has ended: the next stream waits as long as StreamPace demands.
void LrsSession::leave(StreamPace::Ending ending, Instant now) {
  state_ = Waiting{.timer = start_timer("reopen", pace_.closed(ending, now))};
}

// Closes the stream: no cluster in use has its load reported to this server, and either all load
// that the server asked for is reported, or the server has never answered.
void LrsSession::rest(const Live& live, Instant now) {
  effects_.emplace_back(CloseStream{live.stream});
  const Duration wait = pace_.closed(StreamPace::Ending::kUnneeded, now);
  state_ = Idle{};
  if (wait > Duration::zero())
    state_ = Waiting{.timer = start_timer("reopen", wait), .is_rest = true};
}

TimerId LrsSession::start_timer(const char* name, Duration delay) {
  TimerId timer{name, ++timers_};
  effects_.emplace_back(StartTimer{timer, delay});
  return timer;
}

// --- reports ----------------------------------------------------------------

void LrsSession::obey(Live& live, DecodedLoadOrder decoded, Instant now) {
  has_answered_ = true;
  told_.erase(std::exchange(failure_, ""));
  for (std::string& text : decoded.notes)
    note(std::move(text));
  if (live.order == decoded.order) return;
  const bool same_interval = live.order && live.order->interval == decoded.order.interval;
  live.order = std::move(decoded.order);
  if (!same_interval) schedule(live, now);
}

void LrsSession::schedule(Live& live, Instant now) {
  live.due = std::max(reported_at_ + live.order->interval, now);
  const bool has_timer = std::ranges::any_of(report_timers_, [&live](const auto& timer) {
    return timer.second < live.due + kTimersApart;
  });
  if (has_timer) return;
  const TimerId timer = start_timer("report", live.due - now);
  report_timers_.emplace(timer.generation, live.due);
}

// Begins the report that is due, or checks a server that has not answered for a while.
void LrsSession::look(Live& live, Instant /*now*/) {
  if (!live.order) {
    effects_.emplace_back(ReadLoad{std::nullopt});
    return;
  }
  if (!std::holds_alternative<Nothing>(live.unwritten)) {
    live.is_due = true;
    note("the server does not read: the last report is not sent yet; load is counted on");
    return;
  }
  effects_.emplace_back(ReadLoad{live.order->selection});
}

void LrsSession::report(Live& live, const LoadReading& reading, Instant now) {
  if (!reading.unknown.empty()) note(unknown_text(reading.unknown));
  if (reading.lost_values > 0)
    note(
        "an endpoint's load reports have more names than a locality can have (64), or values "
        "that are negative, not finite or too large; these values are not reported");
  const bool is_empty = reading.clusters.empty();
  if (is_empty && !reading.is_in_use) {
    effects_.emplace_back(SettleLoad{reading.number});
    return rest(live, now);
  }
  reported_at_ = now;
  if (is_empty && live.was_empty) {
    effects_.emplace_back(SettleLoad{reading.number});
  } else {
    live.unwritten = Report{reading.number};
    effects_.emplace_back(SendBytes{live.stream, encode_load_request(reading.clusters)});
  }
  live.was_empty = is_empty;
  schedule(live, now);
}

// --- notes ------------------------------------------------------------------

void LrsSession::fail(const std::string& why) {
  failure_ = absl::StrCat(why, "; load is counted on, and reported when the server is back");
  note(failure_);
}

void LrsSession::note(std::string text) {
  if (told_.size() >= kMostTold) told_.clear();
  if (told_.insert(text).second) effects_.emplace_back(LoadServerNoted{std::move(text)});
}

}  // namespace signalbox::xds
