// SPDX-License-Identifier: Apache-2.0
//
// The demo's script, by shares of its time T:
//
//   0           ──▶ steady: the first cluster serves
//   0.20 × T    ──▶ its backends are killed: the second serves
//   0.45 × T    ──▶ so are the second's: the third serves
//   0.60 × T    ──▶ the second's are back
//   0.70 × T    ──▶ the first's are back
//   T           ──▶ the table
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tools/demo_report.hpp"
#include "tools/demo_script.hpp"

namespace signalbox::tools {
namespace {

using Clock = Narrator::Clock;

absl::Status kill(DemoStage& stage, std::size_t leaf) {
  const std::string& cluster = stage.leaves()[leaf];
  stage.with_log(
      [&](CallLog& log) { log.kill_begins(Clock::now(), stage.backends().addresses(cluster)); });
  stage.backends().kill(cluster);
  stage.with_log([](CallLog& log) { log.kill_ended(Clock::now()); });
  return absl::OkStatus();
}

absl::Status bring_back(DemoStage& stage, std::size_t leaf) {
  return stage.backends().start(stage.leaves()[leaf], [&] {
    if (leaf == 0) stage.with_log([](CallLog& log) { log.primary_back(Clock::now()); });
  });
}

struct Act {
  double at = 0;  // As a share of the whole.
  std::string what;
  std::function<absl::Status()> run;
};

std::vector<Act> make_script(DemoStage& stage) {
  const auto& leaves = stage.leaves();
  return {{0.20, "SIGKILL to " + leaves[0], [&stage] { return kill(stage, 0); }},
          {0.45, "SIGKILL to " + leaves[1], [&stage] { return kill(stage, 1); }},
          {0.60, leaves[1] + " comes back", [&stage] { return bring_back(stage, 1); }},
          {0.70, leaves[0] + " comes back", [&stage] { return bring_back(stage, 0); }},
          {1.00, "end", [] { return absl::OkStatus(); }}};
}

std::string live_line_of(DemoStage& stage,
                         std::chrono::nanoseconds since_start,
                         std::chrono::nanoseconds interval) {
  const auto priority = metric_value(stage.runtime().metrics_text(),
                                     "signalbox_priority_active",
                                     "cluster",
                                     stage.topology().aggregate());
  const auto counts = stage.with_log([](CallLog& log) { return log.take_interval(); });
  return live_line(since_start, interval, stage.leaves(), counts, priority);
}

std::string why_failed(const DemoResult& result, const std::string& first_error) {
  if (is_success(result)) return "";
  return first_error.empty()
             ? "not every cluster has served"
             : absl::StrCat("calls failed that need not have; the first: ", first_error);
}

}  // namespace

int play_failover(const DemoOptions& options, DemoStage& stage) {
  if (auto status = stage.start_load(); !status.ok()) return end_early(status);
  std::cout << live_header(stage.leaves(), "priority") << std::endl;
  Narrator narrator([&stage](auto since_start, auto interval) {
    return live_line_of(stage, since_start, interval);
  });
  for (const Act& act : make_script(stage)) {
    const auto offset = std::chrono::duration<double>(act.at * options.seconds);
    const auto due = narrator.start() + std::chrono::round<std::chrono::milliseconds>(offset);
    if (const auto signal = narrator.wait_until(due)) return end_early(*signal);
    narrator.announce(act.what);
    if (auto status = act.run(); !status.ok()) return end_early(status);
  }
  narrator.end();
  if (auto status = stage.finish_load(); !status.ok()) return end_early(status);

  const auto repicked = static_cast<std::uint64_t>(stage.runtime().repicked());
  return stage.with_log([&](const CallLog& log) {
    const DemoResult result = make_result(stage.leaves(), log, repicked);
    return publish(
        options, table(result), to_json(result), why_failed(result, log.first_other_error()));
  });
}

}  // namespace signalbox::tools
