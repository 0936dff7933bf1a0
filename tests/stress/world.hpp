// SPDX-License-Identifier: Apache-2.0
//
// World — what the calls of the stress are made in, and what is done to it meanwhile.
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

  /// One event, drawn from the seed. By one thread.
  void disturb();

  /// Some channel, some router: for as long as the caller wants, whatever becomes of its runtime.
  ChannelPtr channel(Random& random);
  RouterPtr router(Random& random);

  /// Ends all runtimes. What was counted must then add up, once all calls and picks have ended.
  void end_runtimes();
  void check_counters();

  std::string totals() const;

 private:
  /// One runtime and what the application holds of it.
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
  std::vector<std::shared_ptr<prometheus::Collectable>> metrics_;  ///< Of all runtimes ever.
  std::vector<std::thread> endings_;
  std::mutex mutex_;  ///< Guards the lives.
  std::vector<Life> lives_;
};

}  // namespace signalbox::stress
