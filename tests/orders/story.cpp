// SPDX-License-Identifier: Apache-2.0
#include "tests/orders/story.hpp"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"

#include "tests/support/xds_world.hpp"

namespace signalbox::orders {
namespace {

// A configuration that routes all calls to the cluster. The resources have no other cluster, so the
// channel itself must keep the clusters that calls still use.
Configuration routes_to(const std::string& cluster, const std::string& endpoint) {
  test::XdsWorld world;
  world.eds(cluster, {"east:" + endpoint});
  auto config = std::make_shared<XdsConfig>(*world.config());
  Route route;
  route.match.path = TextMatcher{TextMatcher::Kind::kExact, std::string(kPath), false};
  ForwardAction action;
  action.clusters.push_back(WeightedCluster{ClusterName(cluster), 1});
  route.action = std::move(action);
  VirtualHost host;
  host.domains = {"*"};
  host.routes.push_back(std::move(route));
  auto routes = std::make_shared<RouteConfig>();
  routes->virtual_hosts.push_back(std::move(host));
  config->listener = std::make_shared<const Listener>();
  config->route_config = std::move(routes);
  config->virtual_host = &config->route_config->virtual_hosts.front();
  return {cluster, endpoint, std::move(config)};
}

/// How a story is written; see configurations_in().
struct Row {
  const char* configurations;
  std::size_t calls;
  Mailboxes mailboxes;
};

template <typename Value>
using Table = std::map<std::string, Value, std::less<>>;

// README.md says what happens in each.
const Table<Row>& stories() {
  static const Table<Row> kAll{
      {"one", {"a:a1", 1, Mailboxes::kCds}},
      {"endpoint", {"a:a1,a:a2", 1, Mailboxes::kRoot}},
      {"calls", {"a:a1,b:b1", 1, Mailboxes::kRoot}},
      {"leaves", {"a:a1,b:b1", 1, Mailboxes::kCds}},
      {"returns", {"a:a1,b:b1,a:a2", 2, Mailboxes::kCds}},
      {"maps", {"a:a1,a:a2", 0, Mailboxes::kAll}},
  };
  return kAll;
}

const Table<Mailboxes>& mailboxes() {
  static const Table<Mailboxes> kAll{
      {"root", Mailboxes::kRoot},
      {"cds", Mailboxes::kCds},
      {"leaf", Mailboxes::kLeaf},
      {"all", Mailboxes::kAll},
  };
  return kAll;
}

const Table<Plant>& plants() {
  static const Table<Plant> kAll{
      {"nothing", Plant::kNothing},
      {"grace-ignores-readers", Plant::kGraceIgnoresReaders},
      {"use-ends-with-the-pick", Plant::kUseEndsWithThePick},
      {"use-is-never-released", Plant::kUseIsNeverReleased},
      {"answer-is-taken-for-newer", Plant::kAnswerIsTakenForNewer},
      {"ready-is-lost", Plant::kReadyIsLost},
      {"call-is-dropped", Plant::kCallIsDropped},
      {"pick-again-throws", Plant::kPickAgainThrows},
      {"picker-forgets", Plant::kPickerForgets},
      {"references-are-copied", Plant::kReferencesAreCopied},
      {"sequence-stays", Plant::kSequenceStays},
      {"generation-is-lost", Plant::kGenerationIsLost},
      {"routes-are-lost", Plant::kRoutesAreLost},
      {"last-configuration-is-lost", Plant::kLastConfigurationIsLost},
      {"grace-is-lost", Plant::kGraceIsLost},
      {"watcher-forgets-nothing", Plant::kWatcherForgetsNothing},
      {"applied-is-lost", Plant::kAppliedIsLost},
  };
  return kAll;
}

template <typename Value>
std::vector<std::string> names_in(const Table<Value>& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table)
    names.push_back(name);
  return names;
}

template <typename Value>
std::optional<Value> find_in(const Table<Value>& table, absl::string_view name) {
  const auto found = table.find(std::string(name));
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<std::vector<Configuration>> configurations_in(absl::string_view text) {
  std::vector<Configuration> configurations;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    const std::vector<std::string> parts = absl::StrSplit(one, ':');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
    configurations.push_back(routes_to(parts[0], parts[1]));
  }
  return configurations;
}

std::optional<Story> story_named(absl::string_view name) {
  const auto row = find_in(stories(), name);
  if (!row) return std::nullopt;
  return Story{.name = std::string(name),
               .configurations = *configurations_in(row->configurations),
               .calls = row->calls,
               .mailboxes = row->mailboxes};
}

std::vector<std::string> story_names() {
  return names_in(stories());
}

std::optional<Mailboxes> mailboxes_named(absl::string_view name) {
  return find_in(mailboxes(), name);
}

std::vector<std::string> mailboxes_names() {
  return names_in(mailboxes());
}

std::optional<Plant> plant_named(absl::string_view name) {
  return find_in(plants(), name);
}

std::vector<std::string> plant_names() {
  return names_in(plants());
}

}  // namespace signalbox::orders
