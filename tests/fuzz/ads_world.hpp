// SPDX-License-Identifier: Apache-2.0
//
// AdsWorld — the real ClientCore and AdsSession on a clock that nobody waits for, beside AdsModel.
//
//   an action ─▶ AdsModel
//             └▶ ClientCore ◀─▶ AdsSession ─▶ requests ─▶ AdsModel: must it be so?
//                    └▶ what watchers are told ──────────▶ AdsModel: is it all?
//
// Every message arrives at once and in order; after each action everything is quiet, and is
// checked.

#pragma once

#include <cstdint>
#include <map>
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
  /// Both do nothing where there is no stream for it.
  void open_stream();
  void close_stream();
  void respond(const SentResponse& response);
  /// Bytes that are no response: either they are as if they had not come, or the stream is over.
  void respond_nonsense();
  void advance(Duration duration);
  /// What a cancelled timer and an earlier stream may still bring.
  void disturb();
  /// Time passes, a stream comes up, and everybody leaves.
  void end();

 private:
  void tell_session(const AdsSessionEvent& event);
  void tell_client(const ClientEvent& event);
  void run(const AdsSessionEffects& effects);
  void run(const ClientEffects& effects);
  void take_request(const SendBytes& effect);
  void note(WatcherId watcher, const ResourcesChanged& what);
  void check(bool settled);

  Instant now_;
  AdsModel model_;
  xds::AdsSession session_;
  xds::ClientCore client_;
  std::map<std::pair<bool, TimerId>, Instant> timers_;  // Of the client: true.
  std::pair<bool, TimerId> last_cancelled_;
  std::uint64_t stream_ = 0;  // The newest.
  bool opening_ = false;
  std::map<std::pair<WatcherId, ResourceKey>, Told> told_;
};

}  // namespace signalbox::fuzz
