// SPDX-License-Identifier: Apache-2.0
//
// PickUser — a data plane without gRPC. It picks, waits, picks again, and keeps its picks, some of
// them longer than the runtime lives. It reports the start and the end of every call to the router.
//
// Rules
//   P1  A pick that is kComplete has a connection and a cluster; other picks have no connection.
//   P2  on_change() calls its callback once, at the latest when the runtime ends. It does not call
//       a cancelled callback.

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "signalbox/router.hpp"
#include "tests/stress/ledger.hpp"

namespace signalbox::stress {

using RouterPtr = std::shared_ptr<Router>;

class PickUser {
 public:
  PickUser(Ledger& ledger, std::uint64_t seed) : ledger_(ledger), random_(seed) {}

  /// Picks for one call, up to four times, and starts the call if a pick is complete.
  void call(const RouterPtr& router);

  /// Call it after all runtimes have ended. Ends the kept picks, and checks that each callback was
  /// called once, or not at all if it was cancelled (P2).
  void finish();

  std::uint64_t completed() const { return completed_; }

 private:
  struct Held {
    RouterPtr router;
    Pick pick;
  };

  struct Notice {
    std::atomic<int> calls{0};
    bool cancelled = false;
  };

  void check(const Pick& pick);
  void wait_for_change(const RouterPtr& router, const Pick& pick);
  void start(const RouterPtr& router, Pick pick);
  void end_oldest();

  Ledger& ledger_;
  Random random_;
  std::uint64_t completed_ = 0;
  std::deque<Held> held_;
  std::vector<std::shared_ptr<Notice>> notices_;
};

}  // namespace signalbox::stress
