// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/scenario.hpp"

#include <algorithm>
#include <chrono>

namespace signalbox::fleet {
namespace {

using namespace std::chrono_literals;

constexpr double kSlowPart = 0.1;

void stop(Server& server, double /*capacity*/) {
  server.stop();
}

void publish_all(Server& server, double /*capacity*/) {
  for (const ResourceType type : kTypes)
    server.publish(type);
}

void come_back(Server& server, double capacity) {
  server.start();
  publish_all(server, capacity);
}

void come_back_slow(Server& server, double capacity) {
  server.set_capacity(capacity * kSlowPart);
  come_back(server, capacity);
}

void hand_over(Server& server, double capacity) {
  stop(server, capacity);
  come_back(server, capacity);
}

void publish_bad(Server& server, double /*capacity*/) {
  server.publish(ResourceType::kCluster, false);
}

void publish_bad_again(Server& server, double capacity) {
  server.set_sends_again(true);
  publish_bad(server, capacity);
}

void repair(Server& server, double /*capacity*/) {
  server.publish(ResourceType::kCluster);
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = {
      {"push", "a new version for all", {{0s, publish_all}}},
      {"handover", "all streams end, and it is back at once", {{0s, hand_over}}},
      {"restart", "away for 5 seconds", {{0s, stop}, {5s, come_back}}},
      {"away", "away for ten minutes", {{0s, stop}, {10min, come_back}}},
      {"slow",
       "away for 5 seconds, then a tenth of the capacity",
       {{0s, stop}, {5s, come_back_slow}}},
      {"bad", "a bad cluster for all, mended after 60 seconds", {{0s, publish_bad}, {60s, repair}}},
      {"bad-again",
       "as bad, and each NACK is answered with the bad cluster",
       {{0s, publish_bad_again}, {60s, repair}}},
  };
  return all;
}

const Scenario* scenario_named(absl::string_view name) {
  const auto found = std::ranges::find(scenarios(), name, &Scenario::name);
  return found == scenarios().end() ? nullptr : &*found;
}

}  // namespace signalbox::fleet
