// SPDX-License-Identifier: Apache-2.0
//
// The Pick API: which backend takes this call? For any data plane, with no RPC stack.
//
//   runtime->router("xds:///orders") ─▶ [Router] ─▶ pick ─▶ Pick: connection, timeout, receipt
//
//   auto pick = router->pick_until({.path = "/orders/7", .seed = next_seed()}, deadline);
//   if (pick.outcome() != PickOutcome::kComplete) return fail(pick.status());
//   router->started(pick);
//   send_to(pick.connection()->address().str());
//   if (!pick.set_cookie().empty()) response.add_header("set-cookie", pick.set_cookie());
//   router->finished(pick, code);
//
//   for (const PickStep& step : router->explain({.path = "/orders/7"}).steps)
//     log(step.room, step.decision, step.reason, step.source);
//
// Sessions (gRFC A55). Where the route's filters keep sessions on their endpoints, they read the
// call's cookies, which are among its headers; and what the answer is to set for the client is the
// pick's. A proxy hands both through; a client of its own keeps them in a CookieJar:
//
//   struct CookieHeader : HeaderSource {          // All that this client sends.
//     void each(absl::string_view name,
//               absl::FunctionRef<void(absl::string_view)> visit) const override {
//       if (name == "cookie" && !cookies.empty()) visit(cookies);
//     }
//     std::string cookies;
//   };
//
//   CookieHeader headers;
//   headers.cookies = jar.cookie_header("/orders/7");
//   auto pick = router->pick_until({.path = "/orders/7", .headers = &headers, …}, deadline);
//   …                                             // Send it, get the answer.
//   if (!pick.set_cookie().empty()) jar.save(pick.set_cookie());
//
// set_cookie() belongs to the endpoint of the last pick, and is empty where the client's cookie
// holds: read it from the pick that was answered, before it is picked again or destroyed.
//
// A Pick is the call's receipt: keep it while the call runs, then report with finished(). It
// counts the call as in flight on its cluster and its connection, and may outlive the runtime.
// It is moved, not copied, takes at most 256 bytes, and is one thread's at a time.
//
// Thread-safe: one Router serves all threads. It may outlive its runtime; then every pick fails
// UNAVAILABLE. pick() and repick() take no lock and, when complete, allocate nothing: a tenth of a
// microsecond in a warm cache, whatever the number of endpoints, and 6 ns for each route that is
// tried before the right one. What waits, and what fails, allocates.
//
// An endpoint can be picked once it is READY, and what that means is the runtime's option
// RuntimeOptions::transport: unasked, that our gRPC connection to it stands; kTcp, for data planes
// with connections of their own, that it takes TCP connections.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"

#include "lb/pick/router.hpp"

namespace signalbox {

namespace channel {
class OnceWaiter;
class Target;
}  // namespace channel

using lb::CallArgs;
using lb::Pick;

/// Well-spread, and another one each time: for CallArgs::seed. Thread-safe, a few nanoseconds.
std::uint64_t next_seed();

/// What becomes of a call whose pick fails: no endpoint can be reached, or there is no valid
/// configuration. Calls that are dropped (no route, a limit is reached) fail in any case.
enum class OnFail : std::uint8_t {
  kReturn,
  kWait,  ///< gRPC's wait_for_ready.
};

/// Something that is to be called once, and has perhaps not been yet. Destroying this changes
/// nothing. Thread-safe.
class Registration {
 public:
  Registration() = default;

  explicit Registration(std::weak_ptr<channel::OnceWaiter> waiter) : waiter_(std::move(waiter)) {}

  /// True: it has not been called, and never will be. False: it has been, is being called at this
  /// moment, or was cancelled before.
  bool cancel() const;

 private:
  std::weak_ptr<channel::OnceWaiter> waiter_;
};

class Router {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Router(std::shared_ptr<channel::Target> target);

  /// The first pick of a call; never blocks. kComplete: use connection(). kQueue: wait() and
  /// repick(), also where a filter delays it (Pick::delay). kFail: fails, or waits too if the call
  /// would rather wait than fail. kDrop: fails in any case; with OK, where a filter ended it so.
  Pick pick(const CallArgs& call) const;

  /// Picks again for a call that waits; route, cluster, timeout and hash stay (gRFC A31, A42). Give
  /// it the same CallArgs. What a complete pick held is let go of first. One that is delayed stays
  /// as it is until the delay is over.
  void repick(Pick& pick, const CallArgs& call) const;

  /// What pick() would answer now, and why, step by step: for people, not for calls. It counts
  /// nothing, asks for nothing, and takes no turn, so that the picks after it are what they would
  /// have been; see lb::Router::explain(). Never blocks; allocates. Filters and policies of the
  /// program's own take part without their explain() as if the call were picked.
  Explanation explain(const CallArgs& call) const;

  /// Picks, and blocks while the call has to wait: until `deadline`, or until the route's timeout
  /// is over, counted from now (A31), whichever is first. kQueue: nobody was ready in time. kFail
  /// and kDrop say why in status(); with kWait, kFail means that it failed to the last. A pick that
  /// is complete at once costs what pick() does.
  Pick pick_until(const CallArgs& call,
                  Clock::time_point deadline,
                  OnFail on_fail = OnFail::kReturn) const;

  /// As pick_until(), but blocks nobody: `picked` is called once, with what pick_until() would have
  /// returned. On this thread and before this returns, where nobody has to wait; else on a thread
  /// of the runtime or of gRPC, or on the one that destroys the runtime. It must not block, nor
  /// destroy the runtime; it holds no lock of ours, and may pick. The path is copied;
  /// `call.headers`, `call.authority` and `call.tried` have to live until then. The Router need
  /// not.
  Registration pick_async(const CallArgs& call,
                          Clock::time_point deadline,
                          std::function<void(Pick)> picked,
                          OnFail on_fail = OnFail::kReturn) const;

  /// Blocks until something newer than `pick` saw is published, or its delay is over: true; or
  /// until the deadline, or the end of the runtime: false. It may be about something else: pick
  /// again and see.
  bool wait(const Pick& pick, Clock::time_point deadline) const;

  /// Calls `changed` once, when something newer than `pick` saw is published, or its delay is over,
  /// or the runtime ends: no publication is missed, however soon it comes. On which thread, and
  /// what it may do: as pick_async(). Until then, or until it is cancelled, the target is served
  /// even when no Router is left. An empty function is never called.
  Registration on_change(const Pick& pick, std::function<void()> changed) const;

  /// Counts the call as started (signalbox_rpcs_started_total). For picks that were routed.
  void started(const Pick& pick) const;

  /// Counts the call as completed with a gRPC status code (signalbox_rpcs_completed_total), and
  /// tells the policies that count it: outlier detection takes every code but 0 for a failure of
  /// the endpoint. A call that never reached its endpoint is not finished: its Pick is only
  /// destroyed, or picked again.
  void finished(Pick& pick, int code) const;

 private:
  std::shared_ptr<channel::Target> target_;
  lb::Router router_;
};

}  // namespace signalbox
