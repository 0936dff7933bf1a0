// SPDX-License-Identifier: Apache-2.0
//
// FallbackWorld — the real ClientCore between servers that only exist here, beside FallbackModel.
//
//   an action ─▶ FallbackModel
//             └▶ ClientCore ─▶ AskServer, LeaveServer ─▶ FallbackModel: must it be so?
//                    └▶ what watchers are told, the dump ──▶ FallbackModel: is it all?
//
// In the place of each session stands a stream that is up or not. After each action everything is
// quiet, and is checked.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/fallback_model.hpp"
#include "xds/client/client_core.hpp"

namespace signalbox::fuzz {

/// What a server sends of one resource: each once, in this order.
using Answer = std::vector<std::pair<FallbackKey, Said>>;

class FallbackWorld {
 public:
  explicit FallbackWorld(const FallbackOptions& options);

  void watch(WatcherId watcher, const FallbackKey& key);
  void unwatch(WatcherId watcher, const FallbackKey& key);
  void watcher_gone(WatcherId watcher);
  /// The stream comes up, and the server is told what is wanted.
  void connect(ServerId server);
  /// What it was asked for is lost with its stream.
  void fail(ServerId server);
  /// The server is well again, and has sent nothing yet.
  void recover(ServerId server);
  void answer(ServerId server, ResourceType type, const Answer& answer);
  void advance(Duration duration);
  /// What servers that were left, and timers that were cancelled, may still bring.
  void disturb();
  /// Everybody leaves.
  void end();

 private:
  struct Session {
    bool live = false;
    std::map<ResourceType, std::set<FallbackKey>> wanted;
  };

  void tell(const ClientEvent& event);
  void run(const ClientEffect& effect);
  void report_asked(ServerId server, ResourceType type);
  void note(WatcherId watcher, const ResourcesChanged& what);
  void check() const;
  void check_dump() const;

  FallbackModel model_;
  xds::ClientCore client_;
  std::array<std::optional<Session>, kServers> sessions_;
  std::set<std::pair<ServerId, ResourceType>> to_report_;
  std::map<TimerId, Instant> timers_;
  TimerId last_cancelled_;
  std::map<std::pair<WatcherId, FallbackKey>, Told> told_;
  Instant now_;
};

}  // namespace signalbox::fuzz
