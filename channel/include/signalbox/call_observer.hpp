// SPDX-License-Identifier: Apache-2.0
//
// CallObserver — shows the program's calls to code of the program, such as an exporter of traces.
// It has the events of gRFC A72 (attempts) and gRFC A121 (delays).
//
//   RuntimeOptions::call_observer ─▶ call_began() ─▶ CallTrace, one for each call
//
//   a call      call_began ─▶ delays: no configuration yet ─▶ attempts in turn ─▶ call_ended
//   an attempt  attempt_began ─▶ delays: no connection yet ─▶ attempt_sent ─▶ attempt_ended
//   a delay     delay_began ─▶ delay_reason_changed, any number of times ─▶ delay_ended
//
// Order. These hold, whatever happens to a call:
//   - At most one delay and at most one attempt of a call is open. Delays do not cross the borders
//     of attempts.
//   - Every delay and every attempt that has begun ends before call_ended(). A delay within an
//     attempt ends before the attempt does. call_ended() is the last event.
//   - An attempt begins when the call's route is known and the call waits, is sent, or fails under
//     a retry policy. A call that fails before that has no attempt.
//   - The picked connection may die before the call is sent. The attempt then goes on, with another
//     delay.
//   - A CallTrace is destroyed without call_ended() if its call was never started, or if an
//     interceptor of the program answered a call that had not waited. If such a call had waited,
//     the CallTrace sees it end CANCELLED, whatever the interceptor's answer is.
//
// Channels report every call, made with any of gRPC's APIs, except calls that gRPC's global
// interceptor makes. The Pick API reports the picks of pick_until() and pick_async() that have to
// wait, each as a call without attempts: the program itself sends the call.
//
// Threads. call_began() is called on the thread that makes the call, inside the stub's function, so
// it may read that thread's own variables (the current span). The events of one call come one after
// another, on threads of the program, of gRPC and of the runtime. Events of different calls may
// come at the same time. An event must not block, because it runs on the path of its call, and
// perhaps on a thread that serves other calls. Copy what is needed and hand it to a thread of your
// own.
//
// Rules. Events run while parts of the call are locked. So an event must not call signalbox, and
// must not cancel or destroy the call's context. All texts and references are valid during the
// event only.
//
// Exceptions. The call goes on. The CallTrace that threw gets no further event, and is destroyed
// with its call. The runtime's log has a line of the kind `call_observer` while the runtime lives.
//
// Ownership. The runtime, its channels, routers and calls share the CallObserver, so it may outlive
// the runtime. A call owns its CallTrace, and destroys it when its ClientContext or its pick ends.
//
// Cost. Without an observer, a call tests one pointer for each event. With an observer, a call pays
// for an allocation and a mutex. The times of events are the ones that the metrics need anyway;
// with MetricsDetail::kNone, the observer's calls also pay for reading the clock.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"

#include "messages/ids.hpp"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace signalbox {

struct CallBegan {
  absl::string_view target = {};  ///< "xds:///orders"
  absl::string_view method = {};  ///< "/package.Service/Method"; of a pick: CallArgs::path.
  /// The call's context; null: a pick of the Pick API.
  const grpc::ClientContext* context = nullptr;
  Instant at = {};
};

struct DelayBegan {
  /// Why the call waits: A121's word, after the number of the priority that waits, if there is one:
  /// "resolving", "connecting", "p0:connecting", "subchannel_state_mismatch", "filter_delay",
  /// "picker_failing_with_wait_for_ready". Or signalbox's own: "max_concurrent_streams". The texts
  /// are few, and so fit for a metric's label.
  absl::string_view type = {};
  /// Why the call waits, as a text for people: names, addresses, the last error.
  absl::string_view reason = {};
  /// True: the delay is part of an attempt. False: it is a delay of the call (A121's call level),
  /// while no attempt is open.
  bool in_attempt = false;
  Instant at = {};
};

struct AttemptBegan {
  /// The attempts before this one, without transparent retries: grpc-previous-rpc-attempts.
  std::uint32_t previous_attempts = 0;
  /// True: the call was made again immediately, because no server had processed its previous
  /// attempt.
  bool is_transparent_retry = false;
  Instant at = {};
};

struct AttemptSent {
  absl::string_view cluster = {};   ///< For an aggregate: the leaf cluster that takes the call.
  absl::string_view endpoint = {};  ///< "10.0.0.1:443"
  Instant at = {};
};

struct AttemptEnded {
  int code = 0;                    ///< A gRPC status code.
  absl::string_view message = {};  ///< The status's text; a server may have written it.
  /// Set: another attempt follows, after this back-off (0: immediately). nullopt: the call ends.
  std::optional<Duration> retry_after = std::nullopt;
  Instant at = {};
};

struct CallEnded {
  /// The status that the application gets; CANCELLED if the application gave the call up. For a
  /// pick of the Pick API: OK if the pick has an endpoint, DEADLINE_EXCEEDED if it waited too long,
  /// else the status with which the pick failed.
  int code = 0;
  absl::string_view message = {};
  Instant at = {};
};

/// The headers of one attempt, while it is sent.
class AttemptHeaders {
 public:
  virtual ~AttemptHeaders() = default;

  /// Sends `value` under `name`, instead of all values that the call has under that name. Returns
  /// false, and changes nothing, if gRPC would not send such a header. A name consists of a-z, 0-9,
  /// '-', '_' and '.'; a value is printable ASCII, unless the name ends with "-bin".
  virtual bool set(absl::string_view name, absl::string_view value) = 0;
};

/// Sees the events of one call. Override what is needed: later versions may add events.
class CallTrace {
 public:
  virtual ~CallTrace() = default;

  virtual void delay_began(const DelayBegan& /*delay*/) {}

  virtual void delay_reason_changed(absl::string_view /*reason*/, Instant /*at*/) {}

  virtual void delay_ended(Instant /*at*/) {}

  virtual void attempt_began(const AttemptBegan& /*attempt*/) {}

  /// The attempt has an endpoint, and sends its headers now. The event can add headers by
  /// `headers`; routes and HTTP filters have run before, and do not see the added headers. Comes at
  /// most once for an attempt.
  virtual void attempt_sent(const AttemptSent& /*sent*/, AttemptHeaders& /*headers*/) {}

  virtual void attempt_ended(const AttemptEnded& /*end*/) {}

  virtual void call_ended(const CallEnded& /*end*/) {}
};

/// Must be thread-safe: several threads may begin calls at the same time.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  /// A call begins. Returns the CallTrace that gets the events of the call; null: no object gets
  /// them. An exporter that itself calls through this runtime returns null for its own calls.
  virtual std::unique_ptr<CallTrace> call_began(const CallBegan& call) = 0;
};

}  // namespace signalbox
