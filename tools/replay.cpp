// SPDX-License-Identifier: Apache-2.0
#include "channel/replay.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "channel/admin/explain_page.hpp"
#include "channel/admin/status_json.hpp"
#include "channel/status_timeline.hpp"
#include "lb/xx_hash.hpp"
#include "messages/log_line.hpp"
#include "tools/commands.hpp"
#include "tools/explain_text.hpp"
#include "tools/replay_report.hpp"
#include "xds/record/codec.hpp"

namespace signalbox::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The longest recording and the longest output that is read, in bytes.
constexpr std::size_t kMostBytes = std::size_t{2} << 30U;

// The longest time from the recording's end to --until.
constexpr absl::Duration kMostAfterEnd = absl::Hours(1);

// A replay that takes longer says how far it is, and again after each such time.
constexpr auto kSilence = std::chrono::seconds(5);

std::string time_text(Duration duration) {
  return absl::FormatDuration(absl::FromChrono(duration));
}

void warn(const std::string& text) {
  say("replay", text, LogLevel::kWarning);
}

absl::StatusOr<std::string> read_text(const std::string& path) {
  return actors::read_file(path, kMostBytes);
}

absl::StatusOr<xds::ReadRecording> read_segment(const std::string& path) {
  const auto text = read_text(path);
  if (!text.ok()) return text.status();
  return xds::read_recording(*text, path);
}

// A length that is damaged and one of which the bytes are missing look alike.
std::string cut_text(const std::string& path, std::size_t cut_at) {
  return absl::StrCat(path, ": cut off, or the length of an event is damaged, at byte ", cut_at);
}

// Why `earlier` (the header of FILE.old) is not that of the segment before FILE; empty: it is.
std::string mismatch(const RecordingHeader& earlier, const RecordingHeader& header) {
  if (earlier.run != header.run) return "is of another run";
  if (earlier.segment + 1 == header.segment) return "";
  return absl::StrCat(
      "is segment ", earlier.segment, " of the recording, not segment ", header.segment - 1);
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Puts the segment before this one in front, if it is there and of the same recording.
void add_earlier_segment(const std::string& path, Recording& recording) {
  const std::string old = xds::earlier_segment(path);
  if (recording.header.segment == 0) {
    if (exists(old)) {
      say("replay",
          absl::StrCat(old, ", the recording of an earlier process, is no part of this replay"),
          LogLevel::kInfo);
    }
    return;
  }
  const auto leave_out = [&](absl::string_view why) {
    warn(absl::StrCat(why, ": only ", path, " is replayed"));
  };
  auto earlier = read_segment(old);
  if (!earlier.ok()) return leave_out(earlier.status().message());
  if (const auto why = mismatch(earlier->recording.header, recording.header); !why.empty())
    return leave_out(absl::StrCat(old, " ", why));
  // The file begins with the state before it, so it does not need what is left of FILE.old.
  if (earlier->cut_at) return leave_out(cut_text(old, *earlier->cut_at));
  std::vector<RecordedEvent> events = std::move(earlier->recording.events);
  for (RecordedEvent& event : recording.events) {
    if (!event.carried) events.push_back(std::move(event));
  }
  recording.events = std::move(events);
}

absl::StatusOr<Recording> read_all(const ReplayOptions& options) {
  auto read = read_segment(options.file);
  if (absl::IsNotFound(read.status()) && exists(xds::earlier_segment(options.file))) {
    return absl::NotFoundError(absl::StrCat(read.status().message(),
                                            "; there is ",
                                            xds::earlier_segment(options.file),
                                            ", which can be replayed alone"));
  }
  if (!read.ok()) return read.status();
  Recording recording = std::move(read->recording);
  if (read->cut_at) {
    const auto last = recording.events.empty() ? Duration::zero() : recording.events.back().at;
    const std::string what = absl::StrCat(cut_text(options.file, *read->cut_at),
                                          ": ",
                                          recording.events.size(),
                                          " events are whole, the last at ",
                                          time_text(last));
    if (!options.allow_cut)
      return absl::DataLossError(absl::StrCat(what, "; --allow-cut replays them"));
    warn(what);
  }
  add_earlier_segment(options.file, recording);
  for (const RecordedEvent& event : recording.events) {
    const auto* const dropped = std::get_if<EventsDropped>(&event.what);
    if (dropped == nullptr) continue;
    warn(absl::StrCat(dropped->count,
                      " events are missing at ",
                      time_text(event.at),
                      ": what follows may differ from what was"));
  }
  return recording;
}

// "12.5s" since the beginning, or a time of day as RFC 3339 writes it. The recording's end without
// --until. Warns about a time after that end.
absl::StatusOr<Duration> end_of(const ReplayOptions& options,
                                const channel::Replay& replay,
                                WallTime started) {
  if (options.until.empty()) return replay.length();
  absl::Duration since;
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, options.until, &time, &error)) {
    since = time - absl::FromChrono(started);
  } else if (!absl::ParseDuration(options.until, &since)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--until: expected a duration (12.5s, 3m) or a time (2026-11-28T12:00:00Z), got '",
        options.until,
        "'"));
  }
  // The recording's beginning is printed without parts of a millisecond.
  if (since > -absl::Milliseconds(1)) since = std::max(since, absl::ZeroDuration());
  if (since < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("--until: ",
                                                   options.until,
                                                   " is before the recording, which began at ",
                                                   channel::rfc3339(started)));
  }
  const absl::Duration after = since - absl::FromChrono(replay.length());
  const std::string end =
      absl::StrCat("after the end of the recording (", time_text(replay.length()), ")");
  if (after > kMostAfterEnd) {
    return absl::InvalidArgumentError(absl::StrCat("--until: ",
                                                   options.until,
                                                   " is more than ",
                                                   absl::FormatDuration(kMostAfterEnd),
                                                   " ",
                                                   end));
  }
  if (after > absl::ZeroDuration()) {
    warn(absl::StrCat(
        "--until: ", options.until, " is ", end, ": what happens after it is not known"));
  }
  return absl::ToChronoNanoseconds(since);
}

absl::StatusOr<channel::ExplainQuestion> question_of(const ReplayOptions& options) {
  std::multimap<std::string, std::string> query{
      {"target", options.target.empty() ? "xds:///" : options.target}, {"method", options.explain}};
  for (const std::string& header : options.headers)
    query.emplace("header", header);
  for (const std::string& cookie : options.cookies)
    query.emplace("cookie", cookie);
  auto question = channel::parse_explain_query(query);
  if (!question.ok()) return question;
  question->target = options.target;
  question->seed = options.seed;
  return question;
}

// The answer as JSON.
absl::StatusOr<std::string> explain(const ReplayOptions& options,
                                    const Recording& recording,
                                    const channel::Replay& replay) {
  const auto question = question_of(options);
  if (!question.ok()) return question.status();
  auto explanation = replay.explain_json(*question);
  if (explanation.ok() || !options.until.empty() || !replay.status().targets.empty())
    return explanation;
  const bool was_in_use = std::ranges::any_of(recording.events, [](const RecordedEvent& event) {
    return std::holds_alternative<TargetOpened>(event.what);
  });
  if (!was_in_use) return explanation;
  return absl::InvalidArgumentError(
      absl::StrCat(explanation.status().message(), "; --until gives an earlier time"));
}

struct Outcome {
  channel::StatusTimeline timeline;  // With what the actors log.
  std::string explanation;           // JSON; empty: not asked for.
};

std::string heading(const Recording& recording, const channel::Replay& replay) {
  return absl::StrCat("recorded ",
                      channel::rfc3339(recording.header.started),
                      " by signalbox ",
                      recording.header.version,
                      ": ",
                      recording.events.size(),
                      " events in ",
                      time_text(replay.length()),
                      "\n");
}

// Tells calls with other headers or cookies apart; empty if there are none. It hides no value that
// can be guessed.
std::string headers_hash(const ReplayOptions& options) {
  if (options.headers.empty() && options.cookies.empty()) return "";
  const std::string all = OrderedJson::array({options.headers, options.cookies})
                              .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return absl::StrFormat("%016x", lb::xx_hash(all));
}

OrderedJson data_of(const ReplayOptions& options,
                    const Recording& recording,
                    const channel::Replay& replay,
                    const Outcome& outcome) {
  OrderedJson data = {
      {"recorded", channel::rfc3339(recording.header.started)},
      {"recorded_by", recording.header.version},
      {"replayed_by", replay.status().version},
      {"events", recording.events.size()},
      {"length_ns", replay.length().count()},
      {"until_ns", replay.elapsed().count()},
      {"unmatched", replay.unmatched()},
      {"entries", entries_json(outcome.timeline.entries())},
      {"state", OrderedJson::parse(channel::status_json(replay.status()), nullptr, false)}};
  if (!outcome.explanation.empty())
    data["explanation"] = OrderedJson::parse(outcome.explanation, nullptr, false);
  if (const std::string hash = headers_hash(options); !hash.empty()) data["headers_hash"] = hash;
  return data;
}

absl::StatusOr<int> print_difference(const ReplayOptions& options, const OrderedJson& data) {
  const auto other = read_text(options.diff);
  if (!other.ok()) return other.status();
  const auto difference = first_difference(data, *other, options.diff);
  if (!difference.ok()) return difference.status();
  if (!*difference) {
    std::cout << "equal: " << data["entries"].size() << " entries\n";
    return kExitOk;
  }
  std::cout << **difference;
  return kExitFailed;
}

void run(channel::Replay& replay, Duration end, channel::StatusTimeline& timeline) {
  auto said = std::chrono::steady_clock::now();
  replay.run(end, [&](Duration at, const RuntimeStatus& status) {
    timeline.add(at, status);
    const auto now = std::chrono::steady_clock::now();
    if (now - said < kSilence) return;
    said = now;
    say("replay",
        absl::StrCat("at ", time_text(at), " of ", time_text(end), ", and goes on"),
        LogLevel::kInfo);
  });
}

absl::StatusOr<int> replay(const ReplayOptions& options) {
  const auto recording = read_all(options);
  if (!recording.ok()) return recording.status();
  Outcome outcome;
  const channel::Replay* running = nullptr;  // While it runs.
  const auto replay = channel::Replay::start(*recording, [&](const LogLine& line) {
    if (line.kind == LogKind::kRecording) return say("replay", text_of(line), line.level);
    if (running != nullptr) outcome.timeline.add(running->elapsed(), line);
  });
  if (!replay.ok()) {
    return absl::Status(replay.status().code(),
                        absl::StrCat(options.file, ": ", replay.status().message()));
  }
  const auto end = end_of(options, **replay, recording->header.started);
  if (!end.ok()) return end.status();
  running = replay->get();
  run(**replay, *end, outcome.timeline);
  running = nullptr;
  if (!options.explain.empty()) {
    auto explanation = explain(options, *recording, **replay);
    if (!explanation.ok()) return explanation.status();
    outcome.explanation = *std::move(explanation);
  }
  if (!options.diff.empty())
    return print_difference(options, data_of(options, *recording, **replay, outcome));
  if (options.json) {
    std::cout << data_of(options, *recording, **replay, outcome)
                     .dump(2, ' ', false, OrderedJson::error_handler_t::replace)
              << "\n";
    return kExitOk;
  }
  std::cout << heading(*recording, **replay) << timeline_text(outcome.timeline.entries())
            << unmatched_text((*replay)->unmatched());
  if (!options.until.empty()) {
    const RuntimeStatus status = (*replay)->status();
    std::cout << "\nat " << time_text((*replay)->elapsed()) << ", " << channel::rfc3339(status.made)
              << ":\n"
              << state_text(status);
  }
  if (!outcome.explanation.empty())
    std::cout << "\n" << explain_text(nlohmann::json::parse(outcome.explanation));
  return kExitOk;
}

}  // namespace

int run_replay(const ReplayOptions& options) {
  const auto status = replay(options);
  return status.ok() ? *status : fail_to_ask("replay", status.status());
}

}  // namespace signalbox::tools
