// SPDX-License-Identifier: Apache-2.0
//
// signalbox_orders — explores all orders of a story, and prints what it found.
//
//   signalbox_orders [STORY] [--depth N] [--states N] [--configurations a:a1,b:b1] [--calls N]
//                    [--mailboxes KIND] [--plant RULE]
//
// Exit status: 0 no rule is broken, 1 a rule is broken, 2 wrong arguments. Only the first line
// tells whether the search was complete: see to_text().

#include <chrono>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_join.h"
#include <CLI/CLI.hpp>

#include "tests/orders/explore.hpp"

namespace signalbox::orders {
namespace {

struct Options {
  std::string story = "leaves";
  std::string configurations;
  std::optional<std::size_t> calls;
  std::string mailboxes;
  std::string plant = "nothing";
  Limits limits;
};

// The story with the options that change it. nullopt: an option is wrong, and was complained about.
std::optional<Story> story_of(const Options& options) {
  const auto refuse = [](const std::string& what) {
    std::cerr << "there is no " << what << "; see signalbox_orders --help\n";
    return std::nullopt;
  };
  auto story = story_named(options.story);
  if (!story) return refuse("story " + options.story);
  if (!options.configurations.empty()) {
    const auto configurations = configurations_in(options.configurations);
    if (!configurations) return refuse("such list of configurations: " + options.configurations);
    story->configurations = *configurations;
  }
  if (options.calls) story->calls = *options.calls;
  if (!options.mailboxes.empty()) {
    const auto mailboxes = mailboxes_named(options.mailboxes);
    if (!mailboxes) return refuse("kind of mailboxes " + options.mailboxes);
    story->mailboxes = *mailboxes;
  }
  const auto plant = plant_named(options.plant);
  if (!plant) return refuse("plant " + options.plant);
  story->plant = *plant;
  return story;
}

int run(const Story& story, const Limits& limits) {
  const auto began = std::chrono::steady_clock::now();
  const Report report = explore(story, limits);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << to_text(report) << story.name << ": " << std::fixed << std::setprecision(1)
            << took.count() << " s\n";
  return report.broken.empty() ? 0 : 1;
}

}  // namespace
}  // namespace signalbox::orders

int main(int argc, char** argv) {
  using namespace signalbox::orders;
  CLI::App app("Explores all orders in which a target's letters can be delivered.");
  Options options;
  const auto limit = CLI::Range(0, 1'000'000'000);
  app.add_option("story", options.story, "one of " + absl::StrJoin(story_names(), ", "));
  app.add_option("--depth", options.limits.depth, "the most steps of a trace; 0: no limit")
      ->check(limit);
  app.add_option("--states", options.limits.states, "stop at this many states; 0: no limit")
      ->check(limit);
  app.add_option("--configurations", options.configurations, "CLUSTER:ENDPOINT,…, one by one");
  app.add_option("--calls", options.calls, "the number of calls")->check(CLI::Range(0, 100));
  app.add_option("--mailboxes",
                 options.mailboxes,
                 "down to which actors letters wait: " + absl::StrJoin(mailboxes_names(), ", "));
  app.add_option("--plant", options.plant, "breaks a rule: " + absl::StrJoin(plant_names(), ", "));
  CLI11_PARSE(app, argc, argv);
  const auto story = story_of(options);
  return story ? run(*story, options.limits) : 2;
}
