// SPDX-License-Identifier: Apache-2.0
//
// signalbox_fleet — runs scenarios of a fleet of clients and one control plane, and prints a table.
//
//   signalbox_fleet [--clients N] [--capacity N] [--seed S] [--scenario NAME]… [--manner NAME]…
//                   [--json FILE]
//
// Exit status: 0 all clients had the newest version in the end, 1 some did not or the file could
// not be written, 2 wrong arguments.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tests/fleet/fleet.hpp"
#include "tests/fleet/report.hpp"

namespace signalbox::fleet {
namespace {

struct Options {
  FleetOptions fleet;
  std::vector<std::string> scenarios;
  std::vector<std::string> manners;
  std::string json;
};

bool is_wanted(const std::vector<std::string>& names, absl::string_view name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

template <typename Values, typename Name>
std::vector<std::string> names_of(const Values& values, Name name) {
  std::vector<std::string> names;
  for (const auto& value : values)
    names.emplace_back(name(value));
  return names;
}

int run(const Options& options) {
  std::vector<Outcome> outcomes;
  for (const Scenario& scenario : scenarios()) {
    if (!is_wanted(options.scenarios, scenario.name)) continue;
    for (const Manner manner : kManners) {
      if (!is_wanted(options.manners, to_string(manner))) continue;
      std::cerr << "fleet: " << scenario.name << ", " << to_string(manner) << '\n';
      outcomes.push_back(run_fleet(scenario, manner, options.fleet));
    }
  }
  std::cout << table_of(outcomes) << std::flush;
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << json_of(outcomes) << std::flush;
    if (!file) {
      std::cerr << "fleet: " << options.json << " cannot be written\n";
      return 1;
    }
  }
  const auto is_complete = [](const Outcome& one) { return one.reached_by(100).has_value(); };
  return std::ranges::all_of(outcomes, is_complete) ? 0 : 1;
}

}  // namespace
}  // namespace signalbox::fleet

int main(int argc, char** argv) {
  using namespace signalbox::fleet;
  Options options;
  CLI::App app{"Runs many xDS clients and one control plane in virtual time."};
  app.add_option("--clients", options.fleet.clients, "how many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--capacity", options.fleet.capacity, "messages a second of the control plane")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e9));
  app.add_option("--seed", options.fleet.seed, "decides latencies and waits")
      ->capture_default_str();
  app.add_option("--scenario", options.scenarios, "only this one; may be repeated")
      ->check(CLI::IsMember(names_of(scenarios(), [](const Scenario& one) { return one.name; })));
  app.add_option("--manner", options.manners, "only this one; may be repeated")
      ->check(CLI::IsMember(names_of(kManners, [](Manner one) { return to_string(one); })));
  app.add_option("--json", options.json, "write all outcomes to this file as data");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run(options);
}
