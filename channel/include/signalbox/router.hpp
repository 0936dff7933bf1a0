// SPDX-License-Identifier: Apache-2.0
//
// Router — the Pick API: chooses the endpoint for each call of any data plane, without an RPC
// stack.
//
//   runtime->router("xds:///orders") ─▶ [Router] ─▶ pick ─▶ Pick: connection, timeout, status
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
// Sessions (gRFC A55). The HTTP filter stateful_session keeps the calls of a session on one
// endpoint. It reads the call's cookies, which are among the call's headers, and leaves the
// Set-Cookie for the response in the Pick. A proxy passes the client's Cookie header in, and the
// Set-Cookie on to the client. A program that is itself the client keeps the cookies in a
// CookieJar:
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
// Pick::set_cookie() names the endpoint that the Pick has now. It is empty if the client need not
// replace its cookie, or if the route has no sessions. Read it when the response has come, before
// the Pick is passed to repick() or destroyed.
//
// Keep the Pick while the call runs, then report the call's end with finished(). As long as the
// Pick exists, the call counts as in flight on its cluster and its connection. A Pick may outlive
// the runtime. It can be moved but not copied, and takes at most 256 bytes. Only one thread at a
// time may use it.
//
// Thread-safe: one Router serves all threads. A Router may outlive its runtime; then every pick
// fails UNAVAILABLE. pick() and repick() take no lock, except liburcu's at the first pick of a
// thread. A complete pick usually allocates nothing: lb/pick/router.hpp names the exceptions. It
// takes a tenth of a microsecond when its data are in the CPU's cache, whatever the number of
// endpoints. Each route that is tried before the matching route adds 6 ns. Picks that wait or fail
// may allocate.
//
// An endpoint can be picked once it is READY. RuntimeOptions::transport says when that is: by
// default, when signalbox's gRPC connection to the endpoint is established; with kTcp, for data
// planes with connections of their own, when the endpoint accepts TCP connections. When signalbox
// sees this connection end, Connection::takes_calls() is false at once, and picks pass over the
// connection. The policies hear of it later, and the next snapshot is without the endpoint. For
// connections that gRPC makes (those with TLS, for example), pick() may not look; pick_until(),
// pick_async() and repick() do. After pick(), call takes_calls() yourself.

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

/// Returns another number each time, for CallArgs::seed. Thread-safe; takes a few nanoseconds.
std::uint64_t next_seed();

/// Whether a call fails or waits when its pick has the outcome kFail: no endpoint can be reached,
/// or there is no valid configuration. A call with the outcome kDrop ends in any case: for example,
/// it has no route, the control plane drops it, a limit is reached, or a filter has ended it.
enum class OnFail : std::uint8_t {
  kReturn,
  kWait,  ///< gRPC's wait_for_ready.
};

/// Can cancel the callback of pick_async() or on_change() before it runs. Destroying a Registration
/// does not cancel the callback. Thread-safe.
class Registration {
 public:
  Registration() = default;

  explicit Registration(std::weak_ptr<channel::OnceWaiter> waiter) : waiter_(std::move(waiter)) {}

  /// True: the callback has not run and never will. False: it has run, is running now, or was
  /// cancelled before, or there was no callback to wait for.
  bool cancel() const;

 private:
  std::weak_ptr<channel::OnceWaiter> waiter_;
};

class Router {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Router(std::shared_ptr<channel::Target> target);

  /// The first pick of a call; never blocks. By the outcome of the Pick:
  /// - kComplete: send the call on connection(). A connection that gRPC makes may have ended since
  ///   the snapshot was made: if its takes_calls() is false, call repick().
  /// - kQueue: call wait(), then repick(). A call that a filter delays (Pick::delay) has kQueue.
  /// - kFail: the call fails. If the call is wait_for_ready, proceed as for kQueue instead.
  /// - kDrop: the call ends with Pick::status(), even if it is wait_for_ready. The status is OK if
  ///   a filter has ended the call with OK.
  Pick pick(const CallArgs& call) const;

  /// Picks again for a call that waits. The call keeps its route, cluster, timeout and hash (gRFC
  /// A31, A42). Pass the CallArgs of the first pick. A complete Pick gives up its connection first.
  /// Passes over endpoints with connections that take no calls any more. If there is no other
  /// endpoint, the outcome is kQueue.
  /// While a filter's delay of the call lasts (Pick::delay), repick() changes nothing.
  void repick(Pick& pick, const CallArgs& call) const;

  /// Explains which endpoint pick() would choose now, and why, step by step. Explanations are for
  /// people, not for calls. explain() changes no later pick: it counts nothing, connects nothing,
  /// and does not advance round_robin. See lb::Router::explain(). Never blocks; allocates. Custom
  /// filters and policies without an explain() of their own run as for a real call.
  Explanation explain(const CallArgs& call) const;

  /// Picks, and blocks while the call has to wait: until `deadline` or the end of the route's
  /// timeout (A31), counted from now, whichever comes first. kQueue: no endpoint was ready in time.
  /// kFail and kDrop have the reason in status(). With OnFail::kWait, kFail means that the last
  /// pick before the end of the wait failed, too. When the first pick is complete, pick_until()
  /// costs as much as pick() and a look at the connection, takes_calls(). pick() itself looks only
  /// while a connection of the process has ended that snapshots still have.
  Pick pick_until(const CallArgs& call,
                  Clock::time_point deadline,
                  OnFail on_fail = OnFail::kReturn) const;

  /// As pick_until(), without blocking: unless cancelled, `picked` is called once, with the result
  /// that pick_until() would return. `picked` may run on this thread before this function returns;
  /// otherwise it runs on a thread of the runtime or of gRPC, or on the thread that destroys the
  /// runtime. `picked` must not block and must not destroy the runtime. It runs without a lock of
  /// signalbox, and may call this Router. The path is copied; `call.headers`, `call.authority` and
  /// `call.tried` must live until `picked` is called or cancelled. The Router may end earlier.
  Registration pick_async(const CallArgs& call,
                          Clock::time_point deadline,
                          std::function<void(Pick)> picked,
                          OnFail on_fail = OnFail::kReturn) const;

  /// Blocks until picks see a newer snapshot than the one that `pick` was made from (a publication:
  /// a changed configuration or connection). If a filter delays the call (Pick::delay), blocks
  /// until the delay is over instead. Returns true then, and false at the deadline or at the end of
  /// the runtime. The change may have nothing to do with this call: repick() finds that out.
  bool wait(const Pick& pick, Clock::time_point deadline) const;

  /// Calls `changed` once, unless cancelled: when wait() would return true or the runtime ends. A
  /// change between `pick` and this call is not missed: `changed` is then called at once. The
  /// threads on which `changed` runs, and its rules, are those of `picked` in pick_async(). Until
  /// `changed` is called or cancelled, the runtime serves the target even when no Router is left.
  /// An empty `changed` is never called.
  Registration on_change(const Pick& pick, std::function<void()> changed) const;

  /// Counts the call as started (signalbox_rpcs_started_total). Does nothing for a Pick without a
  /// route.
  void started(const Pick& pick) const;

  /// Counts the call as completed with a gRPC status code (signalbox_rpcs_completed_total and, for
  /// the caller, signalbox_calls_total), and reports the code to the policies that count calls:
  /// outlier detection takes every code but 0 for a failure of the endpoint. Do not pass a call
  /// that never reached its endpoint: destroy its Pick instead, or call repick().
  ///
  /// `load_report`: what the endpoint says about its load (gRFC A51), for the policy
  /// weighted_round_robin and for load reports (A64, A85); null: nothing. Values that are NaN,
  /// infinite or negative have no effect, and signalbox_load_reports_total{result="partly"} counts
  /// their reports.
  /// While Pick::wants_load() is false, no policy reads the report.
  void finished(Pick& pick, int code, const LoadReport* load_report = nullptr) const;

  /// Counts, for the caller (signalbox_calls_total), a call that ends without having reached an
  /// endpoint. The code that is counted depends on the outcome of `pick`, the call's last Pick:
  /// - kFail, kDrop: the code of pick.status().
  /// - kQueue: DEADLINE_EXCEEDED.
  /// - kComplete: UNAVAILABLE.
  ///
  /// Call it once for such a call if its last Pick came from pick() or repick(), which do not know
  /// whether another pick follows. pick_until() and pick_async() count the call themselves when
  /// their result is not complete. If their result is complete but the call ends without having
  /// reached its endpoint, call unserved() with that Pick.
  ///
  /// The Pick API times no call: signalbox_call_duration_seconds and signalbox_rpc_duration_seconds
  /// have the calls of channels only. signalbox_pick_wait_seconds also has the waits of
  /// pick_until() and pick_async().
  void unserved(const Pick& pick) const;

 private:
  std::shared_ptr<channel::Target> target_;
  lb::Router router_;
};

}  // namespace signalbox
