// SPDX-License-Identifier: Apache-2.0
//
// signalbox_sim — runs the simulation with each seed, and prints the invariants that were broken.
//
//   signalbox_sim --seeds N [--seed S] [--faults a,b,c] [--trace] [--verbose] [--twice]
//                 [--pinned FILE] [--jobs N] [--fresh REVISION] [--brief] [--hashes]
//                 [--cold-start TARGETS] [--streams] [--list-faults]
//
// --twice: runs each seed again, here and in a new process; the hashes must agree.
// --fresh: the first seed is computed from this text, usually a revision's name. A revision's seeds
// are always the same, so its failures can be reproduced. Other revisions most likely have others.
// --cold-start: runs no worlds. Opens this many targets at once against a slow control plane.
// --streams: runs worlds with one target. Its hosts allow few calls on a connection.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <CLI/CLI.hpp>

#include "messages/invariant.hpp"
#include "tests/sim/cold_start.hpp"
#include "tests/sim/shrink.hpp"
#include "tests/sim/streams.hpp"
#include "tests/sim/workers.hpp"
#include "tests/sim/world.hpp"

namespace signalbox::sim {
namespace {

using testing::Menu;

struct Options {
  std::uint64_t seeds = 100;
  std::uint64_t first = 1;
  std::size_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool trace = false;
  bool twice = false;
  bool hashes = false;
  bool verbose = false;
  bool list_faults = false;
  bool brief = false;
  std::size_t cold_start = 0;
  bool streams = false;
  std::string fresh;
  std::string faults;
  std::string pinned;
};

/// A seed to run. `menu`, if set, replaces the faults that the seed itself would choose.
struct Job {
  std::uint64_t seed = 0;
  absl::optional<Menu> menu;
};

// Reads a line of the --pinned file: "SEED [FAULT,FAULT…]". The text behind # describes the
// failure.
absl::optional<Job> pin_of(const std::string& line) {
  std::istringstream words(line.substr(0, line.find('#')));
  Job job;
  std::string faults;
  if (!(words >> job.seed)) return absl::nullopt;
  if (words >> faults) {
    job.menu = testing::menu_of(faults);
    SIGNALBOX_INVARIANT(job.menu.has_value(), "a pinned seed names faults that exist: " + line);
  }
  return job;
}

std::vector<Job> jobs_of(const Options& options) {
  std::vector<Job> jobs;
  std::ifstream pinned(options.pinned);
  for (std::string line; std::getline(pinned, line);) {
    if (auto pin = pin_of(line)) jobs.push_back(*std::move(pin));
  }
  absl::optional<Menu> menu;
  if (!options.faults.empty()) menu = testing::menu_of(options.faults);
  for (std::uint64_t i = 0; i < options.seeds; ++i)
    jobs.push_back({options.first + i, menu});
  return jobs;
}

std::string repro(const Job& job) {
  return absl::StrCat("./run sim 1 --seed ",
                      job.seed,
                      job.menu ? absl::StrCat(" --faults ", testing::text_of(*job.menu)) : "");
}

std::string faults_text(const Outcome& outcome) {
  std::string text = "faults:";
  for (const Fault fault : outcome.menu) {
    const auto found = outcome.fired.find(fault);
    absl::StrAppend(&text,
                    " ",
                    testing::text_of(Menu{fault}),
                    "×",
                    found == outcome.fired.end() ? 0 : found->second);
  }
  return outcome.menu.empty() ? text + " none" : text;
}

std::string hash_text(const Outcome& outcome) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(outcome.hash));
  return text;
}

// Writes the text in one piece, because other worker processes write to the same stream.
void say(const std::string& text) {
  std::cout << text << std::flush;
}

// The first seed of a revision: far from seeds that people choose, and most likely far from other
// revisions'.
std::uint64_t seed_made_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return 1'000'000 + testing::FakeChance(hash).below(1'000'000) * 10'000;
}

void tell_briefly(const Job& job, const Outcome& outcome) {
  say(absl::StrCat("seed ", job.seed, ": ", outcome.broken.front(), "\n    ", repro(job), "\n"));
}

void tell_failure(const Job& job, const Outcome& outcome) {
  std::string text = absl::StrCat("seed ", job.seed, " broke:\n");
  for (const std::string& sentence : outcome.broken)
    absl::StrAppend(&text, "  ", sentence, "\n");
  absl::StrAppend(&text, "the last steps:\n", outcome.story, faults_text(outcome), "\n");
  absl::StrAppend(&text, "again:    ", repro(job), "\n");
  say(text);  // Before shrink(), because shrink() takes long.
  const Shrunk smallest = shrink(job.seed, outcome);
  say(absl::StrCat("smallest: ",
                   repro({job.seed, smallest.menu}),
                   smallest.finished ? "" : "   (or smaller: the search was cut short)",
                   "\n"));
}

// Runs the seed in another process, which has other memory addresses and other hash-table seeds.
// Returns the hash of that run.
std::string hash_elsewhere(const std::string& program, const Job& job) {
  std::string command = absl::StrCat("'", program, "' --hashes --seeds 1 --seed ", job.seed);
  if (job.menu) absl::StrAppend(&command, " --faults ", testing::text_of(*job.menu));
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char line[64] = {};
  const char* read = std::fgets(line, sizeof line, pipe);
  pclose(pipe);
  std::string hash = read == nullptr ? "" : read;
  while (!hash.empty() && hash.back() == '\n')
    hash.pop_back();
  return hash;
}

Outcome run_one(const Job& job, const Options& options) {
  World world(job.seed, job.menu, options.trace ? &std::cout : nullptr);
  return world.run();
}

bool is_the_same_story(const Job& job,
                       const Outcome& outcome,
                       const Options& options,
                       const std::string& program) {
  const std::string once = hash_text(outcome);
  const std::string again = hash_text(run_one(job, options));
  const std::string elsewhere = hash_elsewhere(program, job);
  if (again == once && elsewhere == once) return true;
  say(absl::StrCat("seed ",
                   job.seed,
                   " broke:\n  the same seed is the same story — but ",
                   once,
                   ", then ",
                   again,
                   ", elsewhere ",
                   elsewhere,
                   "\nagain:    ",
                   repro(job),
                   "\n"));
  return false;
}

bool passes(const Job& job, const Options& options, const std::string& program) {
  const Outcome outcome = run_one(job, options);
  if (options.hashes) {
    say(hash_text(outcome) + "\n");
    return outcome.broken.empty();
  }
  if (!outcome.broken.empty()) {
    options.brief ? tell_briefly(job, outcome) : tell_failure(job, outcome);
    return false;
  }
  if (options.verbose || options.trace) {
    std::uint64_t fired = 0;
    for (const auto& [fault, count] : outcome.fired)
      fired += count;
    say(absl::StrCat("seed ",
                     job.seed,
                     ": ",
                     outcome.steps,
                     " steps, ",
                     outcome.calls,
                     " calls, ",
                     outcome.drains,
                     " drains, "));
    say(absl::StrCat(
        fired, " faults, hash ", hash_text(outcome), "; ", faults_text(outcome), "\n"));
  }
  return !options.twice || is_the_same_story(job, outcome, options, program);
}

int run(const Options& options, const std::string& program) {
  const std::vector<Job> jobs = jobs_of(options);
  if (options.hashes || options.trace) {
    const auto failed =
        std::ranges::count_if(jobs, [&](const Job& job) { return !passes(job, options, program); });
    return failed == 0 ? 0 : 1;
  }
  const Tally tally = run_jobs(
      jobs.size(),
      options.jobs,
      [&](std::size_t i) { return passes(jobs[i], options, program); },
      [&](std::size_t i, const std::string& how) {
        say(absl::StrCat(
            "seed ", jobs[i].seed, " crashed: ", how, "\nagain:    ", repro(jobs[i]), "\n"));
      });
  say(absl::StrCat(tally.passed, " passed, ", tally.failed, " failed\n"));
  return tally.failed == 0 && tally.passed == jobs.size() ? 0 : 1;
}

// The most xDS requests that one cold start may send, whatever the number of targets.
constexpr std::uint64_t kMostRequests = 30;

int run_cold_starts(const Options& options) {
  int failed = 0;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    const std::uint64_t seed = options.first + i;
    // With an even seed all channels open at the same instant. With an odd seed they open one after
    // the other, as fast as an application opens them.
    const Duration apart = std::chrono::microseconds(seed % 2 == 0 ? 0 : 200);
    ColdStart start = run_cold_start(seed, options.cold_start, apart);
    if (start.requests > kMostRequests) start.broken.emplace_back("too many requests");
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(start.until_last_call);
    say(absl::StrCat("cold start ",
                     seed,
                     ": ",
                     start.requests,
                     " requests, the last call after ",
                     took.count(),
                     " ms, ",
                     start.broken.size(),
                     " sentences broken\n"));
    for (std::size_t line = 0; line < std::min<std::size_t>(start.broken.size(), 3); ++line)
      say(absl::StrCat("  ", start.broken[line], "\n"));
    if (!start.broken.empty()) ++failed;
  }
  return failed == 0 ? 0 : 1;
}

int run_streams_worlds(const Options& options) {
  std::uint64_t failed = 0;
  std::uint64_t calls = 0;
  std::uint64_t waits = 0;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    const std::uint64_t seed = options.first + i;
    const StreamsRun result = run_streams(seed);
    calls += result.calls;
    waits += result.waits;
    if (result.broken.empty()) continue;
    ++failed;
    say(absl::StrCat("seed ", seed, " broke:\n  ", absl::StrJoin(result.broken, "\n  "), "\n"));
    if (!options.brief) say(result.story);
  }
  say(absl::StrCat(calls, " calls, ", waits, " waits for a stream, ", failed, " seeds failed\n"));
  return failed == 0 && waits > 0 ? 0 : 1;
}

void list_faults() {
  for (const testing::FaultRow& row : testing::fault_table())
    std::printf("%-20s %3u %%  %s\n", row.name, row.percent, row.what);
}

}  // namespace
}  // namespace signalbox::sim

int main(int argc, char** argv) {
  signalbox::sim::Options options;
  CLI::App app{"Runs the whole runtime in virtual time, under random orders and faults."};
  app.add_option("--seeds", options.seeds, "how many")->capture_default_str();
  app.add_option("--seed", options.first, "the first")->capture_default_str();
  app.add_option("--jobs", options.jobs, "how many processes")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--faults", options.faults, "this menu (a,b,c or none) instead of the seed's own")
      ->check([](const std::string& names) {
        return signalbox::testing::menu_of(names) ? "" : "no such fault; see --list-faults";
      });
  app.add_flag("--list-faults", options.list_faults, "print what can go wrong, and nothing else");
  app.add_option("--cold-start", options.cold_start, "instead: so many targets open at once")
      ->excludes("--faults");
  app.add_flag("--streams", options.streams, "instead: hosts with few streams on a connection")
      ->excludes("--faults");
  app.add_flag("--trace", options.trace, "print every step");
  app.add_flag("--twice", options.twice, "each seed again, here and in a new process: same hash");
  app.add_flag("--brief", options.brief, "a line for each seed that fails; no story, no shrinking");
  app.add_option("--fresh", options.fresh, "the first seed is made of this text (a revision)")
      ->excludes("--seed");
  app.add_flag("--hashes", options.hashes, "print the trace hashes and nothing else");
  app.add_flag("--verbose", options.verbose, "print a line for each seed");
  app.add_option("--pinned", options.pinned, "a file with seeds to be run first")
      ->check(CLI::ExistingFile);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.list_faults) {
    signalbox::sim::list_faults();
    return 0;
  }
  if (options.cold_start > 0) return signalbox::sim::run_cold_starts(options);
  if (options.streams) return signalbox::sim::run_streams_worlds(options);
  if (!options.fresh.empty()) {
    options.first = signalbox::sim::seed_made_of(options.fresh);
    std::printf("%llu seeds from %llu (of %s)\n",
                static_cast<unsigned long long>(options.seeds),
                static_cast<unsigned long long>(options.first),
                options.fresh.c_str());
    std::fflush(stdout);
  }
  return signalbox::sim::run(options, argv[0]);
}
