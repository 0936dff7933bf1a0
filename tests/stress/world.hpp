// SPDX-License-Identifier: Apache-2.0
//
// World — the servers, runtimes and channels that the stress test's calls use, and their changes.
//
//   disturb() ─▶ publish, stop and start backends and the control plane, renew channels, end and
//                begin runtimes ─▶ [World] ◀─ channel(), router() ◀─ calls, picks

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "signalbox/runtime.hpp"
#include "tests/stress/backend.hpp"
#include "tests/stress/calls.hpp"
#include "tests/stress/ledger.hpp"
#include "tests/stress/picks.hpp"
#include "tools/control_plane.hpp"

namespace signalbox::stress {

class World {
 public:
  World(Ledger& ledger, std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Makes one of the changes in the drawing above, drawn from the seed. Only one thread may call
  /// it.
  void disturb();

  /// A random channel or router. The caller may keep it longer than its runtime lives.
  ChannelPtr channel(Random& random);
  RouterPtr router(Random& random);

  /// Ends all runtimes. Once all calls and picks have ended, check_counters() checks their metrics.
  void end_runtimes();
  void check_counters();

  std::string totals() const;

 private:
  /// One runtime, and the channels and routers that the application holds of it.
  struct Life {
    std::unique_ptr<Runtime> runtime;
    std::vector<ChannelPtr> channels;
    std::vector<RouterPtr> routers;
  };

  Life begin_life();
  void publish();
  void toggle_backend();
  void toggle_plane();
  void renew_channel();
  void renew_life();
  Life& some_life(Random& random);
  static void end(Life& life, bool channels_first);

  Ledger& ledger_;
  Random random_;
  std::map<std::string, int> events_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<tools::ControlPlane> plane_;
  bool plane_is_up_ = true;
  /// The metrics of all runtimes so far, including those of ended runtimes.
  std::vector<std::shared_ptr<prometheus::Collectable>> metrics_;
  std::vector<std::thread> endings_;
  std::mutex mutex_;  ///< Guards lives_, with their channels and routers.
  std::vector<Life> lives_;
};

}  // namespace signalbox::stress
