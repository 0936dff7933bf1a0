// SPDX-License-Identifier: Apache-2.0
//
// PickUser — a data plane of its own: picks, waits, picks again, holds its receipts, some of them
// longer than the runtime lives, and reports every call that it started.
//
// Rules
//   P1  A pick is whole: kComplete has a connection and a cluster, the others have no connection.
//   P2  on_change() calls once, at the latest when the runtime ends; never, where it was cancelled.

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

  /// One call.
  void call(const RouterPtr& router);

  /// Once all runtimes are gone: what was held ends, and what was to be called has been.
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
