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
//     log(step.part, step.decision, step.reason, step.source);
//
// Sessions (gRFC A55). A route's filters may keep a session on its endpoint. They read the call's
// cookies, which are among its headers, and leave the response's Set-Cookie in the Pick. A proxy
// passes both through. A program that is itself the client keeps the cookies in a CookieJar:
//
//   struct CookieHeader : HeaderSource {          // All headers that this client sends.
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
//   …                                             // Send the request, get the response.
//   if (!pick.set_cookie().empty()) jar.save(pick.set_cookie());
//
// set_cookie() belongs to the endpoint of the last pick. It is empty while the client's cookie
// stays valid. Read it from the pick that got the response, before that pick is repeated or
// destroyed.
//
// A Pick is the call's receipt: keep it while the call runs, then report with finished(). It counts
// the call as in flight on its cluster and its connection, and may outlive the runtime. A Pick is
// moved, not copied, takes at most 256 bytes, and belongs to one thread at a time.
//
// Thread-safe: one Router serves all threads. A Router may outlive its runtime; then every pick
// fails UNAVAILABLE. pick() and repick() take no lock. A complete pick allocates nothing. It takes
// a tenth of a microsecond in a warm cache, whatever the number of endpoints, and 6 ns for each
// route that is tried before the matching route. Picks that wait or fail allocate.
//
// An endpoint can be picked once it is READY. RuntimeOptions::transport says when that is: by
// default, when signalbox's gRPC connection to the endpoint stands; with kTcp, for data planes with
// connections of their own, when the endpoint accepts TCP connections.

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

/// A well-spread number for CallArgs::seed, different each time. Thread-safe, a few nanoseconds.
std::uint64_t next_seed();

/// What becomes of a call when its pick fails because no endpoint can be reached or no valid
/// configuration is there. Dropped calls (no route, a limit is reached) fail in any case.
enum class OnFail : std::uint8_t {
  kReturn,
  kWait,  ///< gRPC's wait_for_ready.
};

/// A callback that is to run once, and may not have run yet. Destroying a Registration changes
/// nothing. Thread-safe.
class Registration {
 public:
  Registration() = default;

  explicit Registration(std::weak_ptr<channel::OnceWaiter> waiter) : waiter_(std::move(waiter)) {}

  /// True: the callback has not run and never will. False: it has run, is running now, or was
  /// cancelled before.
  bool cancel() const;

 private:
  std::weak_ptr<channel::OnceWaiter> waiter_;
};

class Router {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Router(std::shared_ptr<channel::Target> target);

  /// The first pick of a call; never blocks. kComplete: use connection(). kQueue: wait() and
  /// repick(), also when a filter delays the call (Pick::delay). kFail: the call fails, or waits
  /// too when it is wait_for_ready. kDrop: the call fails in any case; its status is OK when a
  /// filter ended it so.
  Pick pick(const CallArgs& call) const;

  /// Picks again for a call that waits. Route, cluster, timeout and hash stay (gRFC A31, A42). Give
  /// it the same CallArgs. The holdings of a complete pick are released first. A delayed pick does
  /// not change until the delay is over.
  void repick(Pick& pick, const CallArgs& call) const;

  /// The pick that pick() would make now, and the reasons, step by step: for people, not for calls.
  /// It counts nothing, asks for nothing and takes no turn, so it does not change later picks; see
  /// lb::Router::explain(). Never blocks; allocates. Custom filters and policies without an
  /// explain() of their own run as for a real call.
  Explanation explain(const CallArgs& call) const;

  /// Picks, and blocks while the call has to wait: until `deadline` or the end of the route's
  /// timeout (A31), counted from now, whichever comes first. kQueue: no endpoint was ready in time.
  /// kFail and kDrop have the reason in status(). With kWait, kFail means that the call's last pick
  /// failed, too. A pick that is complete at once costs as much as pick().
  Pick pick_until(const CallArgs& call,
                  Clock::time_point deadline,
                  OnFail on_fail = OnFail::kReturn) const;

  /// As pick_until(), without blocking: `picked` is called once, with the result of pick_until(). A
  /// pick that need not wait calls `picked` on this thread, before this function returns. Otherwise
  /// `picked` runs on a thread of the runtime or of gRPC, or on the thread that destroys the
  /// runtime. `picked` must not block and must not destroy the runtime. It runs without a lock of
  /// signalbox, and may pick. The path is copied; `call.headers`, `call.authority` and `call.tried`
  /// must live until then. The Router need not live that long.
  Registration pick_async(const CallArgs& call,
                          Clock::time_point deadline,
                          std::function<void(Pick)> picked,
                          OnFail on_fail = OnFail::kReturn) const;

  /// Blocks until a publication newer than that of `pick`; for a delayed pick, until its delay is
  /// over. Then true; false at the deadline or at the end of the runtime. The publication may be
  /// unrelated to this call: pick again to find out.
  bool wait(const Pick& pick, Clock::time_point deadline) const;

  /// Calls `changed` once: after a publication newer than that of `pick` (for a delayed pick, when
  /// its delay is over), or when the runtime ends. No publication is missed, however soon it comes.
  /// Threads and rules for `changed` are those of pick_async(). Until `changed` is called or
  /// cancelled, the target is served even when no Router is left. An empty function is never
  /// called.
  Registration on_change(const Pick& pick, std::function<void()> changed) const;

  /// Counts the call as started (signalbox_rpcs_started_total). For picks that have a route.
  void started(const Pick& pick) const;

  /// Counts the call as completed with a gRPC status code (signalbox_rpcs_completed_total), and
  /// reports it to the policies that count calls: outlier detection takes every code but 0 for a
  /// failure of the endpoint. Do not finish a call that never reached its endpoint: destroy its
  /// Pick, or pick again.
  void finished(Pick& pick, int code) const;

 private:
  std::shared_ptr<channel::Target> target_;
  lb::Router router_;
};

}  // namespace signalbox
