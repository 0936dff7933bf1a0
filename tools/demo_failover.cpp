// SPDX-License-Identifier: Apache-2.0
//
// The demo's script. T is the time that the script takes:
//
//   0           ──▶ steady: the first cluster serves, and a session begins
//   0.15 × T    ──▶ the first cluster's backends are killed: the second cluster serves
//   0.35 × T    ──▶ the second cluster's backends are killed: the third cluster serves
//   0.45 × T    ──▶ the second cluster's backends are back
//   0.50 × T    ──▶ the first cluster's backends are back
//   0.70 × T    ──▶ when all backends of the first cluster are connected: the session's backend
//                   drains; other calls leave it, the session stays
//   0.80 × T    ──▶ that backend is healthy again, at a lower priority: the session stays
//   0.90 × T    ──▶ that backend has its former priority again
//   T           ──▶ the table
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tools/demo_report.hpp"
#include "tools/demo_script.hpp"
#include "tools/metrics_text.hpp"

namespace signalbox::tools {
namespace {

using Clock = Narrator::Clock;

absl::Status kill(DemoStage& stage, std::size_t leaf) {
  const std::string& cluster = stage.leaves()[leaf];
  stage.act_begins({.verb = "kill", .on = cluster, .what = "SIGKILL to " + cluster});
  stage.with_log(
      [&](CallLog& log) { log.kill_begins(Clock::now(), stage.backends().addresses(cluster)); });
  stage.backends().kill(cluster);
  stage.with_log([](CallLog& log) { log.kill_ended(Clock::now()); });
  return absl::OkStatus();
}

absl::Status bring_back(DemoStage& stage, std::size_t leaf) {
  const std::string& cluster = stage.leaves()[leaf];
  stage.act_begins({.verb = "restart",
                    .on = cluster,
                    .what = absl::StrCat("the backends of ", cluster, " are started again"),
                    .is_fault = false});
  return stage.backends().start(cluster, [&] {
    if (leaf == 0) stage.with_log([](CallLog& log) { log.primary_back(Clock::now()); });
  });
}

constexpr auto kFailbackTime = std::chrono::seconds(20);

// Whether every backend of the cluster is connected, or idle where the policy connects on demand.
bool is_all_back(DemoStage& stage, const std::string& cluster) {
  const auto samples = parse_metrics_text(stage.runtime().metrics_text());
  if (!samples.ok()) return false;
  double usable = 0;
  for (const MetricSample& sample : *samples) {
    if (sample.name != "signalbox_endpoints" || sample.labels.at("cluster") != cluster) continue;
    const std::string& state = sample.labels.at("state");
    if (state == "ready" || state == "idle") usable += sample.value;
  }
  return usable == static_cast<double>(stage.backends().addresses(cluster).size());
}

// The backend of the session, and the changes that the script makes to it.
class PinnedBackend {
 public:
  explicit PinnedBackend(DemoStage& stage) : stage_(stage) {}

  // The session's moves count from here. The failback moved the session, too, and rightly: its
  // cookie named a backend of another cluster.
  absl::Status drain(const Narrator& narrator) {
    auto backend = stage_.session().settle(stage_.leaves()[0], kFailbackTime);
    if (!backend.ok()) return backend.status();
    name_ = *std::move(backend);
    if (name_.empty()) narrator.announce("no session is kept here: no cookie was given");
    return change(
        EndpointChange::Kind::kDraining, "drain", " drains, and the session is on it", narrator);
  }

  absl::Status lower(const Narrator& narrator) const {
    return change(
        EndpointChange::Kind::kLowerPriority, "lower", " gets a lower priority instead", narrator);
  }

  absl::Status restore(const Narrator& narrator) const {
    return change(EndpointChange::Kind::kNone, "undrain", " is what it was", narrator);
  }

 private:
  absl::Status change(EndpointChange::Kind kind,
                      const char* verb,
                      const char* what,
                      const Narrator& narrator) const {
    if (name_.empty()) return absl::OkStatus();
    narrator.announce(name_ + what);
    stage_.act_begins({.verb = verb,
                       .on = name_,
                       .what = name_ + what,
                       .is_fault = kind != EndpointChange::Kind::kNone});
    return stage_.write_resources(0, {kind, name_});
  }

  DemoStage& stage_;
  std::string name_;
};

struct FailoverAct {
  double at = 0;     // When it begins, as a share of the script's time.
  std::string what;  // The announcement; empty: run() announces.
  std::function<absl::Status(const Narrator&)> run;
  // From `at` on, the act waits until this returns true, at most kFailbackTime. Empty: no wait.
  std::function<bool()> may_begin = {};
};

std::vector<FailoverAct> make_script(DemoStage& stage, PinnedBackend& pinned) {
  const auto& leaves = stage.leaves();
  return {{0.15, "SIGKILL to " + leaves[0], [&](auto&) { return kill(stage, 0); }},
          {0.35, "SIGKILL to " + leaves[1], [&](auto&) { return kill(stage, 1); }},
          {0.45, leaves[1] + " comes back", [&](auto&) { return bring_back(stage, 1); }},
          {0.50, leaves[0] + " comes back", [&](auto&) { return bring_back(stage, 0); }},
          // If no other backend is connected, the cluster fails when this one drains, and the
          // session rightly goes to the next cluster.
          {0.70,
           "",
           [&](const Narrator& narrator) { return pinned.drain(narrator); },
           [&] { return is_all_back(stage, leaves[0]); }},
          {0.80, "", [&](const Narrator& narrator) { return pinned.lower(narrator); }},
          {0.90, "", [&](const Narrator& narrator) { return pinned.restore(narrator); }},
          {1.00, "end", [](auto&) { return absl::OkStatus(); }}};
}

std::string live_line_of(DemoStage& stage,
                         std::chrono::nanoseconds since_start,
                         std::chrono::nanoseconds interval) {
  const auto priority = metric_value(stage.runtime().metrics_text(),
                                     "signalbox_priority_active",
                                     "cluster",
                                     stage.topology().aggregate());
  const auto counts = stage.with_log([](CallLog& log) { return log.take_interval(); });
  return absl::StrFormat("%s%7u",
                         live_line(since_start, interval, stage.leaves(), counts, priority),
                         stage.session().moves());
}

std::string why_demo_failed(const DemoResult& result, const std::string& first_error) {
  if (is_success(result)) return "";
  if (!first_error.empty())
    return absl::StrCat("calls failed that need not have; the first: ", first_error);
  return result.session_moves > 0 ? "the session has left a backend that was there for it"
                                  : "not every cluster has served";
}

}  // namespace

int play_failover(const DemoOptions& options, DemoStage& stage) {
  if (auto status = stage.start_load(); !status.ok()) return end_early(status);
  stage.start_session();
  std::cout << live_header(stage.leaves(), "priority") << "  moves\n" << std::flush;
  Narrator narrator([&stage](auto since_start, auto interval) {
    return live_line_of(stage, since_start, interval);
  });
  PinnedBackend pinned(stage);
  for (const FailoverAct& act : make_script(stage, pinned)) {
    const auto offset = std::chrono::duration<double>(act.at * options.seconds);
    const auto due = narrator.start() + std::chrono::round<std::chrono::milliseconds>(offset);
    if (const auto signal = narrator.wait_until(due)) return end_early(*signal);
    if (act.may_begin) {
      if (const auto signal = narrator.wait_until(Clock::now() + kFailbackTime, act.may_begin))
        return end_early(*signal);
    }
    if (!act.what.empty()) narrator.announce(act.what);
    if (auto status = act.run(narrator); !status.ok()) return end_early(status);
  }
  narrator.end();
  if (auto status = stage.finish_load(); !status.ok()) return end_early(status);

  const auto repicked = static_cast<std::uint64_t>(stage.runtime().repicked());
  const auto outcome = stage.with_log([&](const CallLog& log) {
    const DemoResult result = make_result(stage.leaves(), log, repicked, stage.session().moves());
    return DemoOutcome{.table = table(result),
                       .data = to_json(result),
                       .failure = why_demo_failed(result, log.first_other_error()),
                       .notes = notes(result)};
  });
  return publish(options, stage, outcome);
}

}  // namespace signalbox::tools
