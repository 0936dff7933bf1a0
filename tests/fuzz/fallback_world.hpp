// SPDX-License-Identifier: Apache-2.0
//
// FallbackWorld — the real ClientCore between simulated servers, beside FallbackModel.
//
//   an action ─▶ FallbackModel
//             └▶ ClientCore ─▶ AskServer, LeaveServer ─▶ FallbackModel: are they right?
//                    └▶ what watchers are told, the dump ──▶ FallbackModel: is it right?
//
// Each server has a simulated stream, up or down, in place of an AdsSession. After each action
// nothing is in flight, and the client is compared with the model.

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

/// The resources of one response, each once, in the order of the response.
using Answer = std::vector<std::pair<FallbackKey, Said>>;

class FallbackWorld {
 public:
  explicit FallbackWorld(const FallbackOptions& options);

  void watch(WatcherId watcher, const FallbackKey& key);
  void unwatch(WatcherId watcher, const FallbackKey& key);
  void watcher_gone(WatcherId watcher);
  /// Opens the server's stream; the server learns which resources are wanted.
  void connect(ServerId server);
  /// Ends the server's stream, and with it all requests of that stream.
  void fail(ServerId server);
  /// The server works again, but has sent nothing yet.
  void recover(ServerId server);
  void answer(ServerId server, ResourceType type, const Answer& answer);
  void advance(Duration duration);
  /// Delivers late events, which must have no effect: of disconnected servers, and of the timer
  /// that was cancelled last.
  void disturb();
  /// Ends the sequence of actions: 60 s pass, then all watchers leave.
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
