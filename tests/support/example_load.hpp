// SPDX-License-Identifier: Apache-2.0
//
// example_load — the report of a load of 60 s with three faults, one client or two, two clusters
// and sessions, for tests of reports.
//
//   EndedCall × 12,000 ─▶ LoadRecorder ─▶ [example_load] ─▶ LoadReport
//
// All values of a call are computed from its number, so every run gives the same report. `part` and
// `parts` choose every `parts`-th call, as if that many machines had shared the load.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/load/recorder.hpp"
#include "tools/load/report.hpp"
#include "tools/load/thresholds.hpp"

namespace signalbox::tools {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kExampleCalls = 12'000;  // 200 a second.

inline std::vector<LoadFault> example_faults() {
  return {{.name = "kill orders-primary",
           .verb = "kill",
           .what = "SIGKILL to orders-primary",
           .planned_ns = 12'000 * kMs,
           .at_ns = 12'001 * kMs},
          {.name = "restart orders-primary",
           .verb = "restart",
           .what = "orders-primary starts again",
           .planned_ns = 24'000 * kMs,
           .at_ns = 24'000 * kMs,
           .is_fault = false},
          {.name = "stop orders-primary",
           .verb = "stop",
           .what = "SIGSTOP to orders-primary",
           .planned_ns = 32'000 * kMs,
           .at_ns = 32'000 * kMs},
          {.name = "cont orders-primary",
           .verb = "cont",
           .what = "SIGCONT to orders-primary",
           .planned_ns = 34'000 * kMs,
           .at_ns = 34'000 * kMs,
           .is_fault = false},
          {.name = "delay <all> & 40 ms",
           .verb = "delay",
           .what = "a proxy delays answers of <all> & adds 40 ms",
           .planned_ns = 44'000 * kMs,
           .at_ns = 44'000 * kMs},
          {.name = "clear",
           .verb = "clear",
           .what = "the proxy lets all through",
           .planned_ns = 48'000 * kMs,
           .at_ns = 48'000 * kMs,
           .is_fault = false}};
}

// The call with this number, as the client saw it. `is_slow`: the call is made by the client that
// signalbox is compared with, which notices faults late.
inline EndedCall example_call(std::int64_t number, bool is_slow) {
  const std::int64_t due = number * 5 * kMs;
  const std::int64_t noise = number * 7919 % 997;
  const std::int64_t sent = due + 20'000 + noise * 40;
  const std::int64_t down = is_slow ? 1'500 * kMs : 60 * kMs;
  EndedCall call{.due_ns = due,
                 .sent_ns = sent,
                 .ended_ns = sent + 1 * kMs + noise * 1'700,
                 .endpoint = 1 + static_cast<std::uint32_t>(number % 3),
                 .session = static_cast<std::int32_t>(number % 20),
                 .is_closed_loop = number % 2 == 0};
  const std::int64_t second_begin = 12'001 * kMs;
  if (due >= second_begin && due < 24'500 * kMs) call.endpoint = 4 + call.endpoint % 2;
  if (due >= second_begin && due < second_begin + down) {
    call.endpoint = is_slow && number % 3 == 0 ? 1 : 4;
    if (is_slow && number % 3 == 0) {
      call.code = number % 2 == 0 ? 14 : 4;
      call.ended_ns = sent + 300 * kMs;
    } else {
      call.ended_ns += down / 2;
    }
  }
  if (due >= 32'000 * kMs && due < 34'000 * kMs) {
    const std::int64_t resumed = is_slow ? 34'000 * kMs : 32'400 * kMs;
    if (due < resumed) call.ended_ns = resumed + noise * 2'000;
    if (due >= resumed) call.endpoint = 4;
  }
  if (due >= 44'000 * kMs && due < 48'000 * kMs) call.ended_ns += 40 * kMs;
  return call;
}

inline LoadSide example_side(std::string name,
                             bool is_slow,
                             std::int64_t part,
                             std::int64_t parts) {
  LoadRecorder recorder(std::move(name), 20, std::chrono::seconds(60));
  for (int i = 1; i <= 5; ++i) {
    const std::string address = "127.0.0.1:" + std::to_string(40'000 + i);
    const bool is_primary = i <= 3;
    recorder.place(address,
                   {.place = {.cluster = is_primary ? "orders-primary" : "orders-secondary",
                              .priority = is_primary ? 0U : 1U},
                    .rank = is_primary ? 0U : 1U});
    recorder.add_endpoint(address);
  }
  std::vector<EndedCall> calls;
  for (std::int64_t i = part; i < kExampleCalls; i += parts) {
    calls.push_back(example_call(i, is_slow));
    recorder.sent({.due_ns = calls.back().due_ns, .sent_ns = calls.back().sent_ns});
  }
  std::ranges::stable_sort(calls, {}, &EndedCall::ended_ns);
  const std::vector<LoadFault> faults = example_faults();
  auto fault = faults.begin();
  for (const EndedCall& call : calls) {
    for (; fault != faults.end() && fault->at_ns <= call.ended_ns; ++fault)
      recorder.act_began(fault->at_ns, fault->is_fault);
    recorder.ended(call);
  }
  LoadSide side = recorder.finish(
      std::chrono::seconds(60), kMostLatenessP99Ns, {{"connection reset <by> peer", 5}});
  if (side.failed == 0) side.messages.clear();
  side.cpu_per_call_ns = is_slow ? 71'000 : 64'000;
  side.engine_cpu_per_call_ns = 5'200;
  return side;
}

inline LoadReport example_load(bool is_compared, std::int64_t part = 0, std::int64_t parts = 1) {
  LoadReport report;
  report.signalbox_version = "0.1.0";
  report.configuration = {.target = "xds:///orders",
                          .method = "/orders.v1.Orders/Place",
                          .rate = parts == 1 ? "200" : std::to_string(200 / parts),
                          .arrivals = "even",
                          .duration_s = 60,
                          .warmup_s = 5,
                          .seed = 1,
                          .call_timeout_s = 5,
                          .payload_bytes = 18,
                          .sessions = 20,
                          .header_names = {"x-user", "authorization"},
                          .script_file = "drill.yaml",
                          .script = "acts:\n  - at: 12s\n    kill: orders-primary\n"};
  report.started_unix_ms = 1'795'000'000'123;
  report.ran_s = 60;
  report.faults = example_faults();
  report.sides = {example_side("signalbox", false, part, parts)};
  if (is_compared) report.sides.push_back(example_side("grpc", true, part, parts));
  for (const char* text : {"lost>0", "p99>40ms", "recovery[kill orders-primary]>1s"}) {
    report.thresholds.push_back(
        judge_threshold(*parse_threshold(text), report, report.sides.front()));
    if (report.thresholds.back().is_missed) report.exit_status = 1;
  }
  return report;
}

}  // namespace signalbox::tools
