// SPDX-License-Identifier: Apache-2.0
//
// AdsWorld — the real ClientCore and AdsSession on a simulated clock, beside AdsModel.
//
//   an action ─▶ AdsModel
//             └▶ ClientCore ◀─▶ AdsSession ─▶ requests ─▶ AdsModel: are they allowed?
//                    └▶ what watchers are told ──────────▶ AdsModel: is it right?
//
// Every message arrives at once and in order. After each action nothing is in flight, and the
// client is compared with the model. After LeaveServer a new AdsSession starts, but only when some
// time has passed, as in actors/xds_client_actor.cpp.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/fuzz/ads_model.hpp"
#include "xds/client/ads_session.hpp"
#include "xds/client/client_core.hpp"

namespace signalbox::fuzz {

class AdsWorld {
 public:
  explicit AdsWorld(ModelOptions options);

  void watch(WatcherId watcher, const ResourceKey& key);
  void unwatch(WatcherId watcher, const ResourceKey& key);
  void watcher_gone(WatcherId watcher);
  /// open_stream() and close_stream() do nothing when no stream can be opened or closed.
  void open_stream();
  void close_stream();
  void respond(const SentResponse& response);
  /// Sends bytes that are no response. The client ignores them or ends the stream.
  void respond_nonsense();
  void advance(Duration duration);
  /// Delivers late events, which must have no effect: of the timer that was cancelled last, and of
  /// the stream before the newest.
  void disturb();
  /// Ends the sequence of actions: time passes, a stream that the client asked for is opened, and
  /// all watchers leave.
  void end();

 private:
  void tell_session(const AdsSessionEvent& event);
  void tell_client(const ClientEvent& event);
  void run(const AdsSessionEffects& effects);
  void run(const ClientEffects& effects);
  void leave_server();
  void start_session();
  void take_request(const SendBytes& effect);
  void note(WatcherId watcher, const ResourcesChanged& what);
  void check(bool settled);

  Instant now_;
  AdsModel model_;
  xds::AdsSession session_;
  xds::ClientCore client_;
  // The key's bool: whether the timer is ClientCore's (true) or AdsSession's.
  std::map<std::pair<bool, TimerId>, Instant> timers_;
  std::pair<bool, TimerId> last_cancelled_;
  std::uint64_t stream_ = 0;  // The newest stream's number.
  bool opening_ = false;
  std::uint64_t sessions_ = 0;  // How many sessions have ended.
  // What the next session is told first. nullopt: the session has started.
  std::optional<std::map<ResourceType, Subscribe>> for_next_;
  std::map<std::pair<WatcherId, ResourceKey>, Told> told_;
};

}  // namespace signalbox::fuzz
