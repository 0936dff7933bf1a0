// SPDX-License-Identifier: Apache-2.0
//
// signalbox load. Each side has processes of its own, which send its calls. This process does the
// acts of the script, and judges.
//
//   LoadOptions ─▶ [prepare] ─▶ LoadStage: processes, control plane
//                           └▶ SideProcess of each side × --processes ─▶ LoadSide ─▶ LoadReport
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/io/watched_file.hpp"
#include "channel/admin/explain_page.hpp"
#include "channel/admin/metrics_server.hpp"
#include "tools/child_process.hpp"
#include "tools/commands.hpp"
#include "tools/load/http_request.hpp"
#include "tools/load/live_metrics.hpp"
#include "tools/load/payload.hpp"
#include "tools/load/processes.hpp"
#include "tools/load/report_files.hpp"
#include "tools/load/report_json.hpp"
#include "tools/load/report_text.hpp"
#include "tools/load/report_words.hpp"
#include "tools/load/result_file.hpp"
#include "tools/load/script.hpp"
#include "tools/load/side_plan.hpp"
#include "tools/load/stage.hpp"
#include "tools/load/thresholds.hpp"
#include "tools/stop_signals.hpp"
#include "xds/utf8.hpp"

namespace signalbox::tools {
namespace {

// Not by std::cerr: after one line for which there is no room, std::cerr writes nothing any more.
void tell(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The time between two looks at the lines of the sides.
constexpr milliseconds kRound{20};
// The time from the line "go" to the beginning of the schedule, or more with --start-at.
constexpr milliseconds kHeadStart{200};
// Added to the start timeout and to the call timeout, before a side counts as too late.
constexpr auto kPatience = std::chrono::seconds(10);

struct Prepared {
  // The plan of all calls; each process gets its share, its side and its file for the result.
  SidePlan plan;
  Script script;
  std::optional<DrainedResources> resources;
  std::vector<Threshold> thresholds;
  std::optional<absl::Time> start;  // The option --start-at.
  LoadConfiguration configuration;
};

bool is_printable(const std::string& text) {
  return std::ranges::all_of(
      text, [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

absl::Status about(absl::string_view option, const absl::Status& status) {
  return {status.code(), absl::StrCat(option, ": ", status.message())};
}

absl::StatusOr<nanoseconds> duration_of(const char* option, const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration() ||
      duration > absl::Hours(24 * 365))
    return absl::InvalidArgumentError(absl::StrCat(
        option, ": expected a duration such as 500ms, 10s or 1m30s, got '", text, "'"));
  return absl::ToChronoNanoseconds(duration);
}

absl::Status read_durations(const LoadOptions& options, SidePlan& plan) {
  CallPlan& calls = plan.calls;
  nanoseconds lateness{};
  for (const auto& [option, text, to] :
       {std::tuple{"--duration", &options.duration, &calls.duration},
        {"--warmup", &options.warmup, &calls.warmup},
        {"--timeout", &options.timeout, &calls.call_timeout},
        {"--start-timeout", &options.start_timeout, &plan.start_timeout},
        {"--max-lateness", &options.max_lateness, &lateness}}) {
    const auto read = duration_of(option, *text);
    if (!read.ok()) return read.status();
    *to = *read;
  }
  plan.lateness_limit_ns = static_cast<std::uint64_t>(lateness.count());
  if (calls.duration == nanoseconds::zero() || calls.call_timeout == nanoseconds::zero())
    return absl::InvalidArgumentError("--duration and --timeout: expected more than 0s");
  return absl::OkStatus();
}

absl::Status read_http(const LoadOptions& options, SidePlan& plan) {
  if (!options.compare.empty())
    return absl::InvalidArgumentError(
        "--compare: gRPC's channel sends no HTTP requests; leave --compare or --http out");
  auto request = parse_http_url(options.http);
  if (!request.ok()) return about("--http", request.status());
  request->verb = options.request;
  if (request->verb.empty()) request->verb = options.data_file.empty() ? "GET" : "POST";
  for (const auto& [name, value] : plan.calls.headers) {
    if (!is_printable(value))
      return absl::InvalidArgumentError(
          absl::StrCat("--header: ", name, ": HTTP/1.1 takes printable ASCII only"));
  }
  plan.target = request->target();
  plan.calls.method = absl::StrCat(request->verb, " ", request->path);
  plan.http = *std::move(request);
  return absl::OkStatus();
}

absl::Status read_payload(const LoadOptions& options, SidePlan& plan) {
  if (!options.http.empty()) {
    if (auto status = read_http(options, plan); !status.ok()) return status;
  } else {
    const auto method = method_path_of(options.call);
    if (!method.ok()) return about("--call", method.status());
    plan.calls.method = *method;
    plan.calls.request.is_streaming = options.is_streaming;
  }
  if (!options.data_file.empty()) {
    const auto bytes = actors::read_file(options.data_file);
    if (!bytes.ok()) return about("--data-file", bytes.status());
    plan.calls.request.bytes = *bytes;
  } else if (options.reflection) {
    plan.reflected_data = options.data.empty() ? "{}" : options.data;
  } else if (!options.protoset.empty()) {
    const auto protoset = actors::read_file(options.protoset);
    if (!protoset.ok()) return about("--protoset", protoset.status());
    auto payload =
        payload_of_json(*protoset, plan.calls.method, options.data.empty() ? "{}" : options.data);
    if (!payload.ok())
      return about(absl::StrCat("--data with --protoset ", options.protoset), payload.status());
    plan.calls.request = *std::move(payload);
  }
  return absl::OkStatus();
}

absl::Status read_script(const LoadOptions& options, Prepared& prepared) {
  if (!options.script.empty()) {
    const auto text = actors::read_file(options.script);
    if (!text.ok()) return about("--script", text.status());
    auto script = parse_script(*text, options.script, !options.resources.empty());
    if (!script.ok()) return script.status();
    prepared.script = *std::move(script);
    prepared.configuration.script = *text;
    prepared.configuration.script_file = options.script;
  }
  for (const Act& act : prepared.script.acts) {
    if (act.at >= prepared.plan.calls.duration)
      return absl::InvalidArgumentError(absl::StrCat(
          options.script, ": '", act.name, "' comes after the end, which --duration sets"));
  }
  for (const std::string& text : options.fail_if) {
    auto threshold = parse_threshold(text);
    if (!threshold.ok()) return about("--fail-if", threshold.status());
    if (auto status = check_act(*threshold, prepared.script.acts); !status.ok())
      return about("--fail-if", status);
    prepared.thresholds.push_back(*std::move(threshold));
  }
  return absl::OkStatus();
}

absl::Status read_world(const LoadOptions& options, Prepared& prepared) {
  if (!options.resources.empty()) {
    const auto text = actors::read_file(options.resources);
    if (!text.ok()) return about("--resources", text.status());
    auto resources = DrainedResources::parse(*text, options.resources);
    if (!resources.ok()) return about("--resources", resources.status());
    prepared.resources = *std::move(resources);
  } else if (!options.bootstrap.empty()) {
    auto text = actors::read_file(options.bootstrap);
    if (!text.ok()) return about("--bootstrap", text.status());
    const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object())
      return absl::InvalidArgumentError(
          absl::StrCat("--bootstrap: ", options.bootstrap, " is no JSON object"));
    if (!options.compare.empty() && json.contains("signalbox.resources"))
      return absl::InvalidArgumentError(
          "--compare: gRPC cannot read signalbox.resources of the bootstrap; name that file by "
          "--resources");
    prepared.plan.bootstrap = *std::move(text);
  }
  return absl::OkStatus();
}

void fill_configuration(const LoadOptions& options, Prepared& prepared) {
  LoadConfiguration& to = prepared.configuration;
  const CallPlan& calls = prepared.plan.calls;
  const auto seconds = [](nanoseconds ns) { return std::chrono::duration<double>(ns).count(); };
  to.target = prepared.plan.target;
  to.method = calls.method;
  to.rate = options.rate;
  to.arrivals = options.arrivals;
  to.duration_s = seconds(calls.duration);
  to.warmup_s = seconds(calls.warmup);
  to.seed = calls.seed;
  to.call_timeout_s = seconds(calls.call_timeout);
  to.payload_bytes = calls.request.bytes.size();
  to.is_streaming = calls.request.is_streaming;
  to.sessions = static_cast<std::uint32_t>(calls.sessions);
  to.processes = static_cast<std::uint32_t>(options.processes);
  for (const auto& [name, value] : calls.headers)
    to.header_names.push_back(name);
}

// The sides get these texts in JSON.
absl::Status check_texts(const LoadOptions& options) {
  for (const auto& [option, text] : {std::pair{"--target", &options.target},
                                     {"--call", &options.call},
                                     {"--data", &options.data}}) {
    if (!xds::is_utf8(*text)) return about(option, absl::InvalidArgumentError("is not UTF-8"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepared> prepare(const LoadOptions& options) {
  if (auto status = check_texts(options); !status.ok()) return status;
  Prepared prepared;
  SidePlan& plan = prepared.plan;
  plan.target = options.target;
  CallPlan& calls = plan.calls;
  calls.arrivals = options.arrivals == "even" ? Arrivals::kEven : Arrivals::kPoisson;
  calls.seed = options.seed;
  calls.sessions = options.sessions;
  calls.max_in_flight = options.max_in_flight;
  plan.is_live = !options.metrics.empty();
  if (auto status = check_processes(plan, options.processes); !status.ok()) return status;
  auto profile = parse_rate(options.rate);
  if (!profile.ok()) return about("--rate", profile.status());
  calls.profile = *std::move(profile);
  for (const std::string& text : options.headers) {
    auto header = channel::parse_header(text);
    if (!header.ok()) return about("--header", header.status());
    calls.headers.push_back(*std::move(header));
  }
  if (auto status = read_durations(options, plan); !status.ok()) return status;
  if (!options.start_at.empty()) {
    const auto start = parse_start(options.start_at, absl::Now());
    if (!start.ok()) return about("--start-at", start.status());
    prepared.start = *start;
  }
  if (auto status = read_payload(options, plan); !status.ok()) return status;
  if (auto status = read_script(options, prepared); !status.ok()) return status;
  if (auto status = read_world(options, prepared); !status.ok()) return status;
  fill_configuration(options, prepared);
  return prepared;
}

int show_timeline(const LoadOptions& options, const Prepared& prepared) {
  const double seconds = prepared.configuration.duration_s;
  std::cout << absl::StrFormat("%s\n%s calls a second (%s) for %g s: about %.0f calls\n%s",
                               called_text(prepared.configuration),
                               options.rate,
                               options.arrivals,
                               seconds,
                               expected_calls(prepared.plan.calls.profile, seconds),
                               timeline(prepared.script));
  return kExitOk;
}

// A process of a side, as its parent sees it.
class SideProcess {
 public:
  /// `name`: how error texts name the process. `side`: the name of its side.
  static absl::StatusOr<SideProcess> start(SidePlan plan, std::string side, std::string name) {
    auto result = ResultFile::make(side);
    if (!result.ok()) return result.status();
    plan.side = side;
    plan.result = result->path();
    auto process = ChildProcess::start(
        {own_program(), "load-side", "--parent", std::to_string(::getpid())}, {.pipe_stdin = true});
    if (!process.ok()) return process.status();
    const std::size_t index = plan.calls.share.index;
    SideProcess started(
        std::move(side), std::move(name), index, *std::move(result), *std::move(process));
    if (auto status = started.tell(side_plan_json(plan)); !status.ok()) return status;
    return started;
  }

  absl::Status tell(const Json& line) const { return process_.write(line.dump() + "\n"); }

  /// The next line of the side's process; null if none comes within `at_most`.
  absl::StatusOr<Json> hear(milliseconds at_most) {
    const auto line = process_.read_line(at_most);
    if (absl::IsDeadlineExceeded(line.status())) return Json();
    if (!line.ok())
      return absl::UnavailableError(absl::StrCat(name_, " ended early: ", line.status().message()));
    Json json = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (json.contains("error"))
      return absl::UnavailableError(absl::StrCat(name_, ": ", json["error"].get<std::string>()));
    return json;
  }

  absl::StatusOr<LoadSide> result() const { return read_load_side(result_.text()); }

  const std::string& side() const { return side_; }

  const std::string& name() const { return name_; }

  std::size_t index() const { return index_; }  ///< Within its side.

  bool has_died() const { return !failure.empty(); }

  bool is_done = false;  // The process has ended.
  std::string failure;   // How the process died after LoadRun::go(); empty: it did not.
  std::deque<LoadSecond> seconds;

 private:
  SideProcess(std::string side,
              std::string name,
              std::size_t index,
              ResultFile result,
              ChildProcess process)
      : side_(std::move(side)),
        name_(std::move(name)),
        index_(index),
        result_(std::move(result)),
        process_(std::move(process)) {}

  std::string side_;
  std::string name_;
  std::size_t index_;
  ResultFile result_;
  ChildProcess process_;
};

// Runs the load: starts the processes of the sides, does the acts, and makes the report.
class LoadRun {
 public:
  LoadRun(const LoadOptions& options, Prepared prepared)
      : options_(options), prepared_(std::move(prepared)), stage_(prepared_.script) {
    names_ = {kSignalboxSide};
    if (!options_.compare.empty()) names_.emplace_back(kGrpcSide);
  }

  absl::StatusOr<LoadReport> run() {
    if (auto status = serve_metrics(); !status.ok()) return status;
    if (auto status = set_stage(); !status.ok()) return status;
    if (auto status = start_sides(); !status.ok()) return status;
    if (auto status = go(); !status.ok()) return status;
    while (!all_done()) {
      if (auto status = advance(); !status.ok()) return status;
    }
    return make_report();
  }

  /// The signal that ended the run early; nullopt: none did.
  std::optional<int> signal() const { return signal_; }

 private:
  absl::Status serve_metrics() {
    if (options_.metrics.empty()) return absl::OkStatus();
    live_ = std::make_unique<LiveMetrics>(names_, options_.processes, !options_.http.empty());
    auto server = channel::MetricsServer::start(options_.metrics,
                                                [live = live_.get()] { return live->text(); });
    if (!server.ok()) return about("--metrics", server.status());
    server_ = *std::move(server);
    const auto colon = options_.metrics.rfind(':');
    const std::string host =
        colon == std::string::npos ? "127.0.0.1" : options_.metrics.substr(0, colon);
    if (!options_.quiet)
      tell(absl::StrCat("metrics on http://", host, ":", server_->port(), "/metrics"));
    return absl::OkStatus();
  }

  absl::Status set_stage() {
    if (prepared_.resources) {
      if (auto status = stage_.serve(*prepared_.resources); !status.ok()) return status;
      prepared_.plan.bootstrap = stage_.bootstrap();
    }
    return stage_.start();
  }

  absl::Status start_sides() {
    const std::uint64_t count = options_.processes;
    for (const std::string& name : names_) {
      for (std::uint64_t i = 0; i < count; ++i) {
        auto process = SideProcess::start(
            share_of(prepared_.plan, i, count), name, name_of_process(name, i, count));
        if (!process.ok()) return process.status();
        processes_.push_back(*std::move(process));
      }
    }
    const auto deadline = Clock::now() + prepared_.plan.start_timeout + kPatience;
    for (SideProcess& side : processes_) {
      for (bool is_ready = false; !is_ready;) {
        const auto line = side.hear(kRound);
        if (!line.ok()) return line.status();
        is_ready = line->contains("ready");
        if (line->contains("request")) {
          if (auto status = take_request((*line)["request"]); !status.ok()) return status;
        }
        if (auto stop = wait_for_stop(nanoseconds(0))) {
          signal_ = stop;
          return absl::CancelledError("stopped before the first call");
        }
        if (Clock::now() > deadline)
          return absl::DeadlineExceededError(absl::StrCat(side.name(), ": does not start"));
      }
    }
    return absl::OkStatus();
  }

  // Takes the request that a process made by reflection. FAILED_PRECONDITION if it differs from
  // another process's request, because all processes must make the same calls.
  absl::Status take_request(const Json& json) {
    auto request = request_of_json(json);
    if (!request.ok()) return request.status();
    if (reflected_ &&
        (reflected_->bytes != request->bytes || reflected_->is_streaming != request->is_streaming))
      return absl::FailedPreconditionError(
          absl::StrCat("--reflection: two endpoints describe ",
                       prepared_.plan.calls.method,
                       " differently; give its types with --protoset FILE"));
    prepared_.configuration.payload_bytes = request->bytes.size();
    prepared_.configuration.is_streaming = request->is_streaming;
    reflected_ = *std::move(request);
    return absl::OkStatus();
  }

  absl::Status go() {
    auto begin = Clock::now() + kHeadStart;
    if (prepared_.start) {
      const auto left = absl::ToChronoNanoseconds(*prepared_.start - absl::Now());
      if (left < kHeadStart)
        return absl::DeadlineExceededError(
            absl::StrCat("--start-at: ",
                         options_.start_at,
                         " came before the target was ready; choose a later time"));
      begin = Clock::now() + left;
    }
    measured_ = begin + prepared_.plan.calls.warmup;
    started_unix_ms_ = absl::ToUnixMillis(absl::Now() + absl::FromChrono(measured_ - Clock::now()));
    end_ = measured_ + prepared_.plan.calls.duration;
    tell_all({{"go", nanoseconds(begin.time_since_epoch()).count()}});
    return absl::OkStatus();
  }

  void tell_all(const Json& line) const {
    for (const SideProcess& process : processes_) {
      // A process that has died gets no line; hear_all() finds its death.
      if (!process.is_done) process.tell(line).IgnoreError();
    }
  }

  bool all_done() const {
    return std::ranges::all_of(processes_, [](const SideProcess& one) { return one.is_done; });
  }

  // Does the acts that are due, hears the sides, and waits until the next act or round.
  absl::Status advance() {
    auto now = Clock::now();
    while (!signal_ && next_act_ < prepared_.script.acts.size() &&
           now >= measured_ + prepared_.script.acts[next_act_].at) {
      if (auto status = do_act(prepared_.script.acts[next_act_++]); !status.ok()) return status;
      now = Clock::now();
    }
    for (SideProcess& process : processes_) {
      if (auto status = hear_all(process); !status.ok()) return status;
    }
    print_seconds();
    if (now > end_ + prepared_.plan.calls.call_timeout + kPatience)
      return absl::DeadlineExceededError("a side has not ended in time");
    auto until = now + kRound;
    if (!signal_ && next_act_ < prepared_.script.acts.size())
      until = std::min<Clock::time_point>(until, measured_ + prepared_.script.acts[next_act_].at);
    if (const auto stop = wait_for_stop(until - Clock::now()); stop && !signal_) {
      signal_ = stop;
      cut_ = Clock::now();
      tell_all({{"stop", true}});
    }
    return absl::OkStatus();
  }

  absl::Status do_act(const Act& act) {
    const auto now = Clock::now();
    LoadFault fault{.name = act.name,
                    .verb = std::string(to_string(act.verb)),
                    .what = act.what,
                    .planned_ns = act.at.count(),
                    .at_ns = nanoseconds(now - measured_).count(),
                    .is_fault = act.is_fault()};
    // The sides hear of the act before it is done, so that they know of the act before a call fails
    // because of it.
    tell_all(
        {{"act",
          {{"at", nanoseconds(now.time_since_epoch()).count()}, {"is_fault", fault.is_fault}}}});
    const absl::Status done = stage_.act(act);
    if (!done.ok()) fault.error = std::string(done.message());
    if (done.ok() && live_ != nullptr)
      live_->act_was_done(
          fault.name,
          fault.is_fault,
          static_cast<double>(started_unix_ms_) / 1e3 + static_cast<double>(fault.at_ns) / 1e9);
    if (!options_.quiet && !fault.error.empty())
      tell(absl::StrFormat("%9.3f s  %s: not done: %s",
                           static_cast<double>(fault.at_ns) / 1e9,
                           act.what,
                           fault.error));
    faults_.push_back(std::move(fault));
    return absl::OkStatus();
  }

  absl::Status hear_all(SideProcess& process) {
    while (!process.is_done) {
      const auto line = process.hear(milliseconds(0));
      if (!line.ok()) return lose(process, line.status());
      if (line->is_null()) return absl::OkStatus();
      if (line->contains("second")) process.seconds.push_back(second_of_json((*line)["second"]));
      if (line->contains("live"))
        live_->set(side_of(process), process.index(), live_counts_of_json((*line)["live"]));
      if (line->contains("done")) end(process);
      if (!line->contains("place")) continue;
      for (const SideProcess& other : processes_) {
        if (other.side() == process.side() || other.is_done) continue;
        other.tell(*line).IgnoreError();  // hear_all() finds the death of the other process.
      }
    }
    return absl::OkStatus();
  }

  void end(SideProcess& process) const {
    process.is_done = true;
    if (live_ != nullptr) live_->ended(side_of(process), process.index());
  }

  std::size_t side_of(const SideProcess& process) const {
    return static_cast<std::size_t>(std::ranges::find(names_, process.side()) - names_.begin());
  }

  // Records that a process has died. Returns `status` if all processes of its side have died, else
  // OK: the run goes on.
  absl::Status lose(SideProcess& process, const absl::Status& status) {
    end(process);
    process.failure = std::string(status.message());
    const bool is_last = std::ranges::all_of(processes_, [&process](const SideProcess& one) {
      return one.side() != process.side() || one.has_died();
    });
    if (is_last) return status;
    if (!options_.quiet) say("load", process.failure);
    return absl::OkStatus();
  }

  // Prints each second for which every process has reported its figures, or has ended.
  void print_seconds() {
    const auto has_told = [](const SideProcess& process) {
      return process.is_done || !process.seconds.empty();
    };
    while (std::ranges::all_of(processes_, has_told)) {
      std::vector<std::pair<std::string, LoadSecond>> what;
      for (const std::string& name : names_) {
        std::vector<LoadSecond> parts;
        for (SideProcess& process : processes_) {
          if (process.side() != name || process.seconds.empty()) continue;
          parts.push_back(std::move(process.seconds.front()));
          process.seconds.pop_front();
        }
        if (parts.empty()) return;  // The side has ended.
        what.emplace_back(name, merge_seconds(parts));
      }
      ++second_;
      if (!options_.quiet) tell(load_second_text(second_, what, acts_of(second_)));
    }
  }

  // The names of the acts that began within a second; 1 is the first.
  std::vector<std::string> acts_of(std::int64_t second) const {
    std::vector<std::string> acts;
    acts.reserve(faults_.size());
    for (const LoadFault& fault : faults_) {
      if (fault.at_ns / 1'000'000'000 + 1 == second) acts.push_back(fault.name);
    }
    return acts;
  }

  absl::StatusOr<LoadReport> make_report() {
    LoadReport report;
    report.signalbox_version = version_text();
    report.configuration = prepared_.configuration;
    report.started_unix_ms = started_unix_ms_;
    report.is_cut = cut_.has_value();
    const nanoseconds duration = prepared_.plan.calls.duration;
    const auto ran =
        cut_ ? std::clamp<nanoseconds>(*cut_ - measured_, nanoseconds(0), duration) : duration;
    report.ran_s = std::chrono::duration<double>(ran).count();
    report.faults = std::move(faults_);
    const auto failed_runs = stage_.failed_runs();
    for (LoadFault& fault : report.faults) {
      if (const auto failed = failed_runs.find(fault.name); failed != failed_runs.end())
        fault.error = failed->second;
    }
    std::vector<LoadSide> sides;
    for (const std::string& name : names_) {
      std::vector<ProcessResult> results;
      for (const SideProcess& process : processes_) {
        if (process.side() != name) continue;
        auto result = result_of(process, report.faults.size());
        if (!result.ok()) return result.status();
        results.push_back(*std::move(result));
      }
      auto side = merge_processes(report, results);
      if (!side.ok()) return side.status();
      sides.push_back(*std::move(side));
    }
    report.sides = std::move(sides);
    for (const Threshold& threshold : prepared_.thresholds)
      report.thresholds.push_back(judge_threshold(threshold, report, report.sides.front()));
    report.exit_status = signal_ ? 128 + *signal_ : exit_status_of(report);
    return report;
  }

  absl::StatusOr<ProcessResult> result_of(const SideProcess& process, std::size_t faults) const {
    ProcessResult result{.name = process.name(), .side = {}, .failure = process.failure};
    if (process.has_died()) return result;
    auto side = process.result();
    if (!side.ok()) return side.status();
    side->faults.resize(faults);
    const auto proxied = stage_.proxied();
    for (LoadEndpoint& endpoint : side->endpoints) {
      if (const auto behind = proxied.find(endpoint.address); behind != proxied.end())
        endpoint.address = behind->second;
    }
    result.side = *std::move(side);
    return result;
  }

  const LoadOptions& options_;
  Prepared prepared_;
  LoadStage stage_;
  std::unique_ptr<LiveMetrics> live_;  // Set with --metrics.
  std::unique_ptr<channel::MetricsServer> server_;
  std::vector<std::string> names_;      // The sides.
  std::vector<SideProcess> processes_;  // The processes of all sides.
  std::optional<Payload> reflected_;    // The request that the processes made by reflection.
  Clock::time_point measured_;
  Clock::time_point end_;
  std::int64_t started_unix_ms_ = 0;
  std::size_t next_act_ = 0;
  std::vector<LoadFault> faults_;
  std::int64_t second_ = 0;
  std::optional<int> signal_;
  std::optional<Clock::time_point> cut_;
};

int refuse_load(const absl::Status& status) {
  say("load", status.message());
  return kExitUsage;
}

}  // namespace

int run_load(const LoadOptions& options) {
  block_stop_signals();
  auto prepared = prepare(options);
  if (!prepared.ok()) return refuse_load(prepared.status());
  if (options.dry_run) return show_timeline(options, *prepared);
  if (auto status = check_report_files(options.files); !status.ok()) return refuse_load(status);
  LoadRun run(options, *std::move(prepared));
  const auto report = run.run();
  if (!report.ok()) {
    const int status = refuse_load(report.status());
    return run.signal() ? 128 + *run.signal() : status;
  }
  std::cout << load_report_text(*report) << std::flush;
  if (auto status = write_report_files(options.files, *report); !status.ok())
    return refuse_load(status);
  return report->exit_status;
}

}  // namespace signalbox::tools
