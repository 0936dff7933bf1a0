// SPDX-License-Identifier: Apache-2.0
//
// signalbox_sim — runs seeds and says which sentence was broken.
//
//   signalbox_sim --seeds N [--seed S] [--trace] [--twice] [--hashes] [--pinned FILE]
//
// --twice: each seed once more, in a new process, and the hashes must agree.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tests/sim/world.hpp"

namespace signalbox::sim {
namespace {

struct Options {
  std::uint64_t seeds = 100;
  std::uint64_t first = 1;
  bool trace = false;
  bool twice = false;
  bool hashes = false;
  bool verbose = false;
  std::string pinned;
};

std::vector<std::uint64_t> seeds_of(const Options& options) {
  std::vector<std::uint64_t> seeds;
  std::ifstream pinned(options.pinned);
  for (std::string line; std::getline(pinned, line);) {
    if (!line.empty() && line.front() != '#') seeds.push_back(std::stoull(line));
  }
  for (std::uint64_t i = 0; i < options.seeds; ++i)
    seeds.push_back(options.first + i);
  return seeds;
}

void tell(std::uint64_t seed, const Outcome& outcome) {
  std::cout << "seed " << seed << " broke:\n";
  for (const std::string& sentence : outcome.broken)
    std::cout << "  " << sentence << '\n';
  std::cout << "the last steps:\n" << outcome.story;
  std::cout << "./run sim 1 --seed " << seed << std::endl;
}

// The hash of the seed in a process of its own: other addresses, other hash seeds.
std::string hash_elsewhere(const std::string& program, std::uint64_t seed) {
  const std::string command = "'" + program + "' --hashes --seeds 1 --seed " + std::to_string(seed);
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

std::string hash_text(const Outcome& outcome) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(outcome.hash));
  return text;
}

Outcome run_one(std::uint64_t seed, const Options& options) {
  World world(seed, options.trace ? &std::cout : nullptr);
  return world.run();
}

bool passes(std::uint64_t seed, const Options& options, const std::string& program) {
  const Outcome outcome = run_one(seed, options);
  if (options.hashes) std::cout << hash_text(outcome) << std::endl;
  if (!outcome.broken.empty()) {
    tell(seed, outcome);
    return false;
  }
  if (options.verbose) {
    std::cout << "seed " << seed << ": " << outcome.steps << " steps, " << outcome.calls
              << " calls, hash " << hash_text(outcome) << std::endl;
  }
  if (!options.twice) return true;
  const std::string again = hash_text(run_one(seed, options));
  const std::string elsewhere = hash_elsewhere(program, seed);
  if (again == hash_text(outcome) && elsewhere == again) return true;
  std::cout << "seed " << seed << " broke:\n  the same seed is the same story — but "
            << hash_text(outcome) << ", then " << again << ", elsewhere " << elsewhere
            << "\n./run sim 1 --seed " << seed << std::endl;
  return false;
}

int run(const Options& options, const std::string& program) {
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  for (const std::uint64_t seed : seeds_of(options)) {
    if (passes(seed, options, program)) {
      ++passed;
    } else {
      ++failed;
    }
    if (!options.hashes && (passed + failed) % 50 == 0)
      std::cout << passed + failed << " seeds" << std::endl;
  }
  if (!options.hashes) std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace signalbox::sim

int main(int argc, char** argv) {
  signalbox::sim::Options options;
  CLI::App app{"Runs the whole runtime in virtual time, under random orders and faults."};
  app.add_option("--seeds", options.seeds, "how many")->capture_default_str();
  app.add_option("--seed", options.first, "the first")->capture_default_str();
  app.add_flag("--trace", options.trace, "print every step");
  app.add_flag("--twice", options.twice, "each seed again, here and in a new process: same hash");
  app.add_flag("--hashes", options.hashes, "print the trace hashes and nothing else");
  app.add_flag("--verbose", options.verbose, "print a line for each seed");
  app.add_option("--pinned", options.pinned, "a file with seeds to be run first");
  CLI11_PARSE(app, argc, argv);
  return signalbox::sim::run(options, argv[0]);
}
