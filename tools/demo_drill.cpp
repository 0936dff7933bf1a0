// SPDX-License-Identifier: Apache-2.0
//
// The script of `--drill control-plane`. The control plane leaves three times under load, and each
// time it comes back with another order of the aggregate's clusters:
//
//   killed     SIGKILL, away for --kill-seconds; a new process puts the second cluster first
//   stopped    SIGSTOP for --stop-seconds, with streams half open; SIGCONT: the third is first
//   replaced   SIGKILL, and a new process at once: the first is first again
//
// The resources change while the control plane is away, so no client can have the change before the
// control plane returns.
#include <algorithm>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tools/demo_report.hpp"
#include "tools/demo_script.hpp"
#include "tools/drill_log.hpp"
#include "tools/drill_report.hpp"
#include "tools/metrics_text.hpp"

namespace signalbox::tools {
namespace {

using Clock = Narrator::Clock;

constexpr auto kSteadyTime = std::chrono::seconds(2);

struct Phase {
  std::string name;
  std::string leaves;   // The announcement when the control plane leaves.
  std::string returns;  // The announcement when the control plane returns.
  std::chrono::duration<double> away{0};
  bool is_killed = true;  // False: the control plane is stopped, not killed.
  std::size_t first_leaf = 0;
};

std::vector<Phase> make_script(const DemoOptions& options) {
  using Seconds = std::chrono::duration<double>;
  return {{"killed", "SIGKILL to", "started again:", Seconds(options.kill_seconds), true, 1},
          {"stopped", "SIGSTOP to", "continues:", Seconds(options.stop_seconds), false, 2},
          {"replaced", "SIGKILL to", "started anew at once:", Seconds(0), true, 0}};
}

// Why a phase ended early: a stop signal or an error. std::monostate: it did not.
using Interruption = std::variant<std::monostate, int, absl::Status>;

class Drill {
 public:
  explicit Drill(DemoStage& stage) : stage_(stage) {}

  // Calls report to this object, so the load must end before the object is destroyed.
  ~Drill() { stage_.finish_load().IgnoreError(); }

  Drill(const Drill&) = delete;
  Drill& operator=(const Drill&) = delete;

  void add(const FinishedCall& call) {
    const std::lock_guard lock(mutex_);
    log_.add(call);
  }

  std::string live_line_of(std::chrono::nanoseconds since_start, std::chrono::nanoseconds interval);
  Interruption play(const Phase& phase, Narrator& narrator);

  // Precondition: the load has ended.
  DrillResult result() {
    return stage_.with_log([this](const CallLog& calls) { return make_result(calls, log_); });
  }

 private:
  template <class Use>
  auto with_log(Use use) {
    const std::lock_guard lock(mutex_);
    return use(log_);
  }

  absl::Status leave(const Phase& phase);
  absl::Status come_back(const Phase& phase);

  DemoStage& stage_;
  std::mutex mutex_;
  DrillLog log_;
};

std::string Drill::live_line_of(std::chrono::nanoseconds since_start,
                                std::chrono::nanoseconds interval) {
  const auto connected = metric_value(stage_.runtime().metrics_text(),
                                      "signalbox_xds_connected",
                                      "xds_server",
                                      stage_.control_plane().address());
  const auto counts = stage_.with_log([](CallLog& log) { return log.take_interval(); });
  return live_line(since_start, interval, stage_.leaves(), counts, connected);
}

absl::Status Drill::leave(const Phase& phase) {
  stage_.act_begins({.verb = phase.is_killed ? "kill" : "stop",
                     .on = "control-plane",
                     .what = absl::StrCat(phase.leaves, " the control plane")});
  if (phase.is_killed)
    stage_.control_plane().kill();
  else
    stage_.control_plane().stop();
  with_log([&](DrillLog& log) {
    log.left(Clock::now(), phase.name, stage_.leaves()[phase.first_leaf], phase.is_killed);
  });
  return stage_.write_resources(phase.first_leaf);
}

absl::Status Drill::come_back(const Phase& phase) {
  stage_.act_begins(
      {.verb = phase.is_killed ? "restart" : "cont",
       .on = "control-plane",
       .what = absl::StrCat(
           "the control plane is back, with ", stage_.leaves()[phase.first_leaf], " first"),
       .is_fault = false});
  with_log([](DrillLog& log) { log.returning(Clock::now()); });
  if (phase.is_killed) {
    if (auto status = stage_.control_plane().start(); !status.ok()) return status;
  } else {
    stage_.control_plane().resume();
  }
  with_log([](DrillLog& log) { log.returned(Clock::now()); });
  return absl::OkStatus();
}

Interruption Drill::play(const Phase& phase, Narrator& narrator) {
  const auto in = [](std::chrono::duration<double> time) {
    return Clock::now() + std::chrono::round<Clock::duration>(time);
  };
  if (const auto signal = narrator.wait_until(in(kSteadyTime))) return *signal;

  narrator.announce(absl::StrCat(phase.leaves, " the control plane"));
  if (auto status = leave(phase); !status.ok()) return status;
  if (const auto signal = narrator.wait_until(in(phase.away))) return *signal;

  narrator.announce(absl::StrCat("the control plane ",
                                 phase.returns,
                                 " ",
                                 stage_.leaves()[phase.first_leaf],
                                 " is to be first"));
  if (auto status = come_back(phase); !status.ok()) return status;
  const auto bound = with_log([](DrillLog& log) { return log.absences().back().bound(); });
  const auto is_done = [this] {
    return with_log([](DrillLog& log) { return log.is_in_effect(); });
  };
  if (const auto signal = narrator.wait_until(in(bound), is_done)) return *signal;
  narrator.announce(is_done() ? "and so it is" : "which it is not in time");
  return {};
}

}  // namespace

int play_control_plane_drill(const DemoOptions& options, DemoStage& stage) {
  Drill drill(stage);
  if (auto status = stage.start_load([&drill](const FinishedCall& call) { drill.add(call); });
      !status.ok()) {
    return end_early(status);
  }
  std::cout << live_header(stage.leaves(), "connected") << "\n" << std::flush;
  Narrator narrator([&drill](auto since_start, auto interval) {
    return drill.live_line_of(since_start, interval);
  });
  for (const Phase& phase : make_script(options)) {
    const auto interruption = drill.play(phase, narrator);
    if (const auto* signal = std::get_if<int>(&interruption)) return end_early(*signal);
    if (const auto* status = std::get_if<absl::Status>(&interruption)) return end_early(*status);
  }
  const auto least =
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(options.seconds));
  const auto end =
      std::max<Clock::time_point>(narrator.start() + least, Clock::now() + kSteadyTime);
  if (const auto signal = narrator.wait_until(end)) return end_early(*signal);
  narrator.end();
  if (auto status = stage.finish_load(); !status.ok()) return end_early(status);
  const DrillResult result = drill.result();
  return publish(options,
                 stage,
                 {.table = table(result), .data = to_json(result), .failure = why_failed(result)});
}

}  // namespace signalbox::tools
