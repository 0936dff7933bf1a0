// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/report.hpp"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include <nlohmann/json.hpp>

namespace signalbox::fleet {
namespace {

using nlohmann::ordered_json;

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

ordered_json seconds_of(std::optional<Duration> duration) {
  if (!duration) return nullptr;
  const auto milliseconds = std::chrono::round<std::chrono::milliseconds>(*duration).count();
  return static_cast<double>(milliseconds) / 1000;
}

// The clients that have the newest version at the end of each second from its publication.
std::vector<std::size_t> reached_each_second(const Outcome& outcome) {
  std::vector<std::size_t> counts;
  std::size_t count = 0;
  for (Duration end = std::chrono::seconds(1); count < outcome.reached.size();
       end += std::chrono::seconds(1)) {
    while (count < outcome.reached.size() && outcome.reached[count] <= end)
      ++count;
    counts.push_back(count);
  }
  return counts;
}

ordered_json json_of(const Outcome& outcome) {
  const Arrivals total = outcome.total();
  const Scenario& scenario = *scenario_named(outcome.scenario);
  ordered_json json;
  json["scenario"] = outcome.scenario;
  json["title"] = std::string(scenario.title);
  json["manner"] = std::string(to_string(outcome.manner));
  json["clients"] = outcome.options.clients;
  json["capacity"] = outcome.options.capacity;
  json["seed"] = outcome.options.seed;
  json["published_s"] = seconds_of(scenario.published());
  json["p50_s"] = seconds_of(outcome.reached_by(50));
  json["p99_s"] = seconds_of(outcome.reached_by(99));
  json["p100_s"] = seconds_of(outcome.reached_by(100));
  json["peak"] = outcome.peak();
  json["peak_connections"] = outcome.peak_connections();
  json["peak_connections_tenth"] = outcome.peak_connections(1);
  json["messages"] = total.arrived();
  json["connections"] = total.connections;
  json["refused"] = total.refused;
  json["wasted"] = outcome.wasted;
  json["nacks"] = outcome.nacks;
  json["most_nacks"] = outcome.most_nacks;
  json["longest_wait_s"] = seconds_of(std::optional(outcome.longest_wait));
  for (const char* series : {"arrived", "refused_each"})
    json[series] = ordered_json::array();
  for (const Arrivals& second : outcome.seconds()) {
    json["arrived"].push_back(second.arrived());
    json["refused_each"].push_back(second.refused);
  }
  json["reached"] = reached_each_second(outcome);
  return json;
}

std::string text_of(std::optional<Duration> duration) {
  return duration ? absl::StrFormat("%.1f", seconds_of(*duration)) : "never";
}

constexpr const char* kRow = "%-10s %-10s %8s %8s %8s %8s %8s %8s %9s %8s %8s %8s %8s\n";

}  // namespace

std::string json_of(const std::vector<Outcome>& outcomes) {
  ordered_json json = ordered_json::array();
  for (const Outcome& outcome : outcomes)
    json.push_back(json_of(outcome));
  return json.dump() + "\n";
}

std::string table_of(const std::vector<Outcome>& outcomes) {
  std::string table = absl::StrFormat(kRow,
                                      "scenario",
                                      "manner",
                                      "50 % s",
                                      "99 % s",
                                      "100 % s",
                                      "peak",
                                      "conn/s",
                                      "in 0.1 s",
                                      "messages",
                                      "refused",
                                      "wasted",
                                      "nacks",
                                      "wait s");
  for (const Outcome& outcome : outcomes) {
    const Arrivals total = outcome.total();
    absl::StrAppend(&table,
                    absl::StrFormat(kRow,
                                    outcome.scenario,
                                    std::string(to_string(outcome.manner)),
                                    text_of(outcome.reached_by(50)),
                                    text_of(outcome.reached_by(99)),
                                    text_of(outcome.reached_by(100)),
                                    absl::StrCat(outcome.peak()),
                                    absl::StrCat(outcome.peak_connections()),
                                    absl::StrCat(outcome.peak_connections(1)),
                                    absl::StrCat(total.arrived()),
                                    absl::StrCat(total.refused),
                                    absl::StrCat(outcome.wasted),
                                    absl::StrCat(outcome.nacks),
                                    text_of(outcome.longest_wait)));
  }
  return table;
}

}  // namespace signalbox::fleet
