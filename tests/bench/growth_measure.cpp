// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of a world of some size. growth.py makes the world larger and larger.
//
//   the side's own small target is served, quiet
//     ─▶ open options.targets ─ first picks ─ quiet: cold start, memory
//     ─▶ picks with cold caches ─▶ dumps ─▶ driver: ready ─▶ plane sets the next world: an update …
//
// The side is started, connected to the control plane and quiet before anything is measured. So the
// costs of a process and of a runtime are in no number.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/bench/measures.hpp"
#include "tests/bench/other_work.hpp"
#include "tests/bench/percentiles.hpp"
#include "tests/bench/process_usage.hpp"
#include "tests/bench/quiet.hpp"
#include "tests/bench/ticks.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto kGrowthPatience = std::chrono::seconds(120);
constexpr int kIdleWindows = 5;
constexpr std::size_t kMostDumps = 5;

struct OpenTarget {
  std::string name;
  std::shared_ptr<Router> router;
};

using Targets = std::vector<OpenTarget>;

// Waits until a pick of the target is complete.
absl::Status first_pick(const OpenTarget& target, const std::string& path) {
  const Pick pick =
      target.router->pick_until({.path = path}, Clock::now() + kGrowthPatience, OnFail::kWait);
  if (pick.outcome() == PickOutcome::kComplete) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      target.name, ": no pick is complete after two minutes: ", pick.status().message()));
}

struct TargetsStart {
  Targets targets;
  double first_picks_ms = 0;
  double cpu_ms = 0;
};

// Opens the targets, and waits until a pick of each is complete, all endpoints are connected, and
// the process is quiet. CPU time for looking at the connections is no cost of the start.
absl::StatusOr<TargetsStart> start_targets(const MeasureOptions& options,
                                           const Side& side,
                                           const std::string& path,
                                           double idle) {
  TargetsStart start;
  const auto begun = Clock::now();
  const double before = cpu_seconds();
  for (int number = 0; number < options.targets; ++number) {
    const std::string name = absl::StrCat("xds:///bench", number);
    auto router = side.runtime->router(name);
    if (!router.ok()) return router.status();
    start.targets.push_back({name, *std::move(router)});
  }
  for (const OpenTarget& target : start.targets) {
    if (auto status = first_pick(target, path); !status.ok()) return status;
  }
  start.first_picks_ms = Milliseconds(Clock::now() - begun).count();
  const double before_looking = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  if (options.port != 0) {
    auto connected = wait_for_connections(options.endpoints, options.port);
    if (!connected.ok()) return connected;
  }
  const double looking = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before_looking;
  start.cpu_ms = (cpu_until_quiet(idle, before, begun, kGrowthPatience) - looking) * 1e3;
  return start;
}

// The median time of picks of a target and a path by chance, each after other work.
absl::StatusOr<double> pick_ns(const MeasureOptions& options,
                               const Targets& targets,
                               const std::vector<std::string>& paths) {
  std::mt19937_64 dice;
  OtherWork work;
  std::string path;  // The copy brings the path into the cache, as a call's path is.
  std::vector<double> ticks;
  const auto end = Clock::now() + options.length;
  do {
    const Router& router = *targets[dice() % targets.size()].router;
    const std::string& chosen = paths[dice() % paths.size()];
    const std::uint64_t seed = dice();
    work.run();
    path = chosen;
    const std::uint64_t begin = ticks_now();
    const Pick pick = router.pick({.path = path, .seed = seed});
    ticks.push_back(static_cast<double>(ticks_now() - begin));
    if (pick.outcome() != PickOutcome::kComplete)
      return absl::UnavailableError(absl::StrCat("a pick of ", path, " was not complete"));
  } while (Clock::now() < end);
  return (percentile(ticks, 50) - ticks_overhead()) / ticks_per_nanosecond();
}

struct DumpCost {
  double cpu_ms = 0;
  double megabytes = 0;
};

absl::StatusOr<DumpCost> dump_cost(const MeasureOptions& options, const Runtime& runtime) {
  DumpCost cost;
  std::vector<double> cpu_ms;
  const auto end = Clock::now() + options.length;
  do {
    const double before = cpu_seconds();
    const auto text = runtime.dump_json();
    cpu_ms.push_back((cpu_seconds() - before) * 1e3);
    if (!text.ok()) return text.status();
    cost.megabytes = static_cast<double>(text->size()) / 1e6;
  } while (cpu_ms.size() < kMostDumps && Clock::now() < end);
  cost.cpu_ms = percentile(cpu_ms, 50);
  return cost;
}

// The generation of the configuration that each target uses.
absl::StatusOr<std::map<std::string, Generation>> generations(const Runtime& runtime) {
  const auto dump = runtime.dump();
  if (!dump.ok()) return dump.status();
  std::map<std::string, Generation> newest;
  for (const AppliedConfig& applied : dump->applied)
    newest[applied.target] = applied.generation;
  return newest;
}

// The CPU time of one update, in milliseconds. The driver makes the control plane set it after the
// line of output.
absl::StatusOr<double> update_cpu_ms(const MeasureOptions& options,
                                     const Side& side,
                                     const Targets& targets,
                                     const std::string& path,
                                     double idle) {
  const auto before_update = generations(*side.runtime);
  if (!before_update.ok()) return before_update.status();
  const auto changed = std::min(targets.size(), options.changed_targets);
  std::vector<Pick> picks;
  picks.reserve(changed);
  for (std::size_t number = 0; number < changed; ++number)
    picks.push_back(targets[number].router->pick({.path = path}));
  // What the look at the generations has set off must be over.
  cpu_until_quiet(idle, cpu_seconds(), Clock::now(), kGrowthPatience);

  const auto since = Clock::now();
  const double before = cpu_seconds();
  std::cout << R"({"ready":true})" << "\n" << std::flush;
  for (std::size_t number = 0; number < changed; ++number) {
    if (!targets[number].router->wait(picks[number], since + kGrowthPatience)) {
      return absl::DeadlineExceededError(absl::StrCat(
          targets[number].name, ": picks have not seen the update within two minutes"));
    }
  }
  picks.clear();
  const double cpu = cpu_until_quiet(idle, before, since, kGrowthPatience);
  const auto after_update = generations(*side.runtime);
  if (!after_update.ok()) return after_update.status();
  for (std::size_t number = 0; number < changed; ++number) {
    const std::string& name = targets[number].name;
    if (after_update->at(name) == before_update->at(name)) {
      return absl::InternalError(
          absl::StrCat(name, ": picks have changed, and the configuration has not"));
    }
  }
  return cpu * 1e3;
}

}  // namespace

Measured measure_growth(const MeasureOptions& options, Side& side) {
  const std::vector<std::string> paths = paths_of(options.routes);
  if (auto status = first_pick({"the side's own target", side.router}, kMethodPath); !status.ok())
    return status;
  cpu_until_quiet(0, cpu_seconds(), Clock::now(), kGrowthPatience);
  const double idle = idle_cpu(kIdleWindows);
  const double memory_before = status_megabytes("VmRSS");

  const auto start = start_targets(options, side, paths.front(), idle);
  if (!start.ok()) return start.status();
  const double memory = status_megabytes("VmRSS") - memory_before;
  const auto pick = pick_ns(options, start->targets, paths);
  if (!pick.ok()) return pick.status();
  const auto dump = dump_cost(options, *side.runtime);
  if (!dump.ok()) return dump.status();
  std::vector<double> update_ms;
  for (int update = 0; update < options.updates; ++update) {
    const auto cpu = update_cpu_ms(options, side, start->targets, paths.front(), idle);
    if (!cpu.ok()) return cpu.status();
    update_ms.push_back(*cpu);
  }
  return nlohmann::json{{"pick_ns", *pick},
                        {"memory_mb", memory},
                        {"update_cpu_ms", percentile(update_ms, 50)},
                        {"start_ms", start->first_picks_ms},
                        {"start_cpu_ms", start->cpu_ms},
                        {"dump_cpu_ms", dump->cpu_ms},
                        {"dump_mb", dump->megabytes}};
}

}  // namespace signalbox::bench
