// SPDX-License-Identifier: Apache-2.0
//
// The Pick API: which backend takes this call? For any data plane, with no RPC stack.
//
//   runtime->router("xds:///orders") ─▶ [Router] ─▶ pick ─▶ Pick: connection, timeout, receipt
//
//   auto pick = router->pick({.path = "/orders.v1.Orders/Place", .seed = my_random_number()});
//   if (pick.outcome() == PickOutcome::kComplete) call(pick.connection()->address());
//
// A Pick is the call's receipt: keep it while the call runs, then report with finished(). It
// counts the call as in flight on its cluster and its connection, and may outlive the runtime.
//
// Thread-safe. pick() and repick() take no lock and, when complete, allocate nothing.

#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "absl/status/status.h"

#include "lb/router.hpp"

namespace signalbox {

namespace channel {
class Target;
}  // namespace channel

using lb::CallArgs;
using lb::Pick;

class Router {
 public:
  explicit Router(std::shared_ptr<channel::Target> target);

  /// The first pick of a call. kComplete: use connection(). kQueue: wait() and repick(), also where
  /// a filter delays it (Pick::delay). kFail: fails, or waits too if the call would rather wait
  /// than fail. kDrop: fails in any case; with OK, where a filter ended it so.
  Pick pick(const CallArgs& call) const {
    Pick pick = router_.pick(call);
    if (pick.delay() > Duration::zero()) pick.begin_delay(std::chrono::steady_clock::now());
    return pick;
  }

  /// Picks again for a call that waits; route, cluster and timeout stay (gRFC A31). One that is
  /// delayed stays as it is until the delay is over.
  void repick(Pick& pick, const CallArgs& call) const;

  /// Blocks until something newer than `pick` saw is published, or its delay is over: true; or
  /// until the deadline, or the end of the runtime: false.
  bool wait(const Pick& pick, std::chrono::steady_clock::time_point deadline) const;

  /// Calls `changed` once, on a thread of the runtime or of gRPC or this one, when something newer
  /// than `pick` saw is published, or its delay is over, or the runtime ends. It must not block,
  /// nor destroy the runtime. An empty function is never called.
  void on_change(const Pick& pick, std::function<void()> changed) const;

  /// Counts the call as started (signalbox_rpcs_started_total). For picks that were routed.
  void started(const Pick& pick) const;

  /// Counts the call as completed with a gRPC status code (signalbox_rpcs_completed_total), and
  /// tells the policies that count it. A call that never reached its endpoint is not finished: its
  /// Pick is only destroyed.
  void finished(Pick& pick, int code) const;

 private:
  std::shared_ptr<channel::Target> target_;
  lb::Router router_;
};

}  // namespace signalbox
