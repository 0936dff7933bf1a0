// SPDX-License-Identifier: Apache-2.0
//
// Client — a client core for tests, with its effects as lines of text.
//
//   Client client;
//   client.watch(1, cds("a"))   ▶  {"subscribe CDS [a]"}
//
// A subscription that ends in " at 1" is for server 1. One without this end is for server 0.

#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/overloaded.hpp"
#include "tests/support/xds_resources.hpp"
#include "xds/client/client_core.hpp"

namespace signalbox::xds {

using Lines = std::vector<std::string>;

inline std::string describe(const ResourceChanged& change) {
  return absl::StrCat(
      change.key.name, " ", change.resource.ok() ? "value" : change.resource.status().ToString());
}

inline std::string describe(const AmbientErrorChanged& change) {
  return absl::StrCat(change.key.name, " ambient ", change.status.ToString());
}

inline Lines describe(const ClientEffect& effect) {
  return std::visit(
      Overloaded{
          [](const AskServer& ask) {
            return Lines{absl::StrCat("subscribe ",
                                      to_string(ask.subscription.type),
                                      " [",
                                      absl::StrJoin(ask.subscription.names, " "),
                                      "]",
                                      ask.server == 0 ? "" : absl::StrCat(" at ", ask.server))};
          },
          [](const LeaveServer& leave) { return Lines{absl::StrCat("leave ", leave.server)}; },
          [](const NotifyWatcher& notify) {
            Lines lines;
            for (const auto& change : notify.what.changes) {
              const auto text = std::visit([](const auto& what) { return describe(what); }, change);
              lines.push_back(absl::StrCat(notify.watcher, ": ", text));
            }
            return lines;
          },
          [](const CountUpdates& count) {
            return Lines{absl::StrCat("count ", count.valid, " ", count.invalid)};
          },
          [](const CountResources&) { return Lines{}; },
          [](const StartTimer& start) { return Lines{absl::StrCat("timer ", start.timer.name)}; },
          [](const CancelTimer& cancel) {
            return Lines{absl::StrCat("cancel ", cancel.timer.name)};
          },
      },
      effect);
}

class Client {
 public:
  explicit Client(ClientOptions options = {}) : core_(std::move(options)) {}

  /// Returns the effects as lines. Lines that begin with "count" come last.
  Lines step(const ClientEvent& event) {
    Lines lines;
    for (const ClientEffect& effect : core_.step(event, Instant{}, wall)) {
      if (const auto* start = std::get_if<StartTimer>(&effect)) timer = *start;
      if (const auto* notify = std::get_if<NotifyWatcher>(&effect)) told = notify->what;
      if (const auto* count = std::get_if<CountResources>(&effect))
        gauges[absl::StrCat(to_string(count->type), " ", count->cache_state)] = count->count;
      for (std::string& line : describe(effect))
        lines.push_back(std::move(line));
    }
    std::ranges::stable_partition(
        lines, [](const std::string& line) { return !absl::StartsWith(line, "count"); });
    return lines;
  }

  Lines watch(WatcherId watcher, const ResourceKey& key) {
    return step(WatchesChanged{watcher, {Watch{key}}});
  }

  Lines unwatch(WatcherId watcher, const ResourceKey& key) {
    return step(WatchesChanged{watcher, {Unwatch{key}}});
  }

  template <typename Report>
  Lines report(Report what, ServerId from = 0) {
    return step(ServerReported{from, std::move(what)});
  }

  Lines asked(std::set<std::string> names, ServerId of = 0) {
    return report(SubscriptionSent{ResourceType::kCluster, std::move(names)}, of);
  }

  /// The server `from` sends a CDS response with these resources.
  Lines receive(std::vector<ReceivedResource> resources, ServerId from = 0) {
    return report(ResourcesReceived{ResourceType::kCluster, "v", std::move(resources), {}}, from);
  }

  Lines server(absl::Status status, ServerId which = 0) {
    return report(ServerStatusChanged{std::move(status)}, which);
  }

  ResourceDump dump() const { return core_.dump(); }

  StartTimer timer;                             ///< The timer that was started last.
  ResourcesChanged told;                        ///< The changes that a watcher was told last.
  std::map<std::string, std::uint64_t> gauges;  ///< The last value of "CDS acked" and the like.
  WallTime wall;

 private:
  ClientCore core_;
};

inline ReceivedResource good(const std::string& name, const std::string& service = "e") {
  return {name, Resource{tests::eds_cluster(name, service)}};
}

inline ReceivedResource bad(const std::string& name) {
  return {name, absl::InvalidArgumentError("type: not supported")};
}

// Three servers, best first.
inline ClientOptions three_servers() {
  ClientOptions options;
  options.servers = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  options.default_servers = {0, 1, 2};
  return options;
}

inline absl::Status lost(const std::string& server) {
  return absl::UnavailableError("xDS server " + server + ": refused");
}

}  // namespace signalbox::xds
