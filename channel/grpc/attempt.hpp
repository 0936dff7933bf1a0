// SPDX-License-Identifier: Apache-2.0
//
// Attempt — the interface between a call and its attempts, in both directions.
//
//   picks ─▶ [CallIntent] ─▶ call_binder, queued_call ─▶ [AttemptedCall::bound] ─▶ the call
//                 ▲                                                                     │
//                 └── again, or the end ◀── CallBinder::retry ◀── [EndedAttempt] ◀──────┘
//
// call_binder and queued_call, which give an attempt its connection, see a call only through
// AttemptedCall. call_interceptor implements AttemptedCall.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/call_hook.h>

#include "channel/pick/lost_picks.hpp"
#include "lb/pick/router.hpp"
#include "lb/route/retry.hpp"
#include "messages/counting/caller_stats.hpp"
#include "messages/ids.hpp"
#include "signalbox/router.hpp"

namespace signalbox::channel {

class CallBinder;

/// A call that is looking for a connection: its last pick, and the data that all its picks share.
/// When the call has a connection, Attempts keeps the CallIntent for further attempts. If the call
/// has no call interceptor, its context keeps the CallIntent instead.
struct CallIntent {
  std::uint64_t seed = 0;
  bool wait_for_ready = false;
  gpr_timespec started{};
  bool is_picked = false;
  bool is_limited = false;  ///< The route's timeout has been applied to the deadline.
  lb::RetryState retry;
  TriedAddresses tried;  ///< The addresses of ended attempts; empty unless retries avoid them.
  std::unique_ptr<LostPicks> lost;  ///< Of the snapshot of the last pick; usually null.
  lb::Pick pick;
  std::string authority;  ///< The authority that the pick sets (A81); empty: none.
};

/// The outcome of an attempt of a call.
struct EndedAttempt {
  /// The application's context. It has all data that the attempt received.
  grpc::ClientContext& context;
  /// The attempt's status. If the connection broke off and no attempt follows, CallBinder::retry()
  /// adds target and endpoint to the text.
  grpc::Status& status;
  /// The size of the request that is kept for another attempt; nullopt: the request is not kept.
  std::optional<std::size_t> request_bytes;
  bool is_wanted = true;  ///< The call can be made again, and the application has not cancelled it.
  /// True: gRPC may have passed the attempt to a connection (actors::reach_of()). False: gRPC has
  /// not passed it to a connection.
  bool was_taken = true;
};

/// A call, as seen by the parts that bind its attempts to connections. If the call gets its
/// connection when it is made, the AttemptedCall is also the call's CallHook, to which gRPC passes
/// every batch of the call.
class AttemptedCall : public grpc::internal::CallHook {
 public:
  /// Begins an attempt: the attempt has got its grpc_call, or its pick failed and the call's retry
  /// policy may apply. `binder` lives as long as the application's context.
  [[gnu::hot]] virtual void bound(CallBinder& binder, CallIntent intent) = 0;

  /// Whether the application has cancelled the context.
  virtual bool is_cancelled() const = 0;

  /// The call waits with this intent's pick, for this reason. Called again after each later pick
  /// with which the call still waits, for the same reason or another.
  virtual void waits(const CallBinder& binder,
                     const CallIntent& intent,
                     DelayType type,
                     Instant at) = 0;

  /// The call waits no longer. Does nothing for a call that has not waited.
  virtual void waits_no_longer(Instant at) = 0;

  /// Returns the call `front` for the application, in the place of `real`, the first attempt's
  /// call. The application keeps `front` for all attempts. Takes over the reference to `front`.
  ///
  /// Reason: gRPC's reactors ask the call that they were made with whether response headers came.
  /// The first attempt's call may say no although a later attempt has headers. No operation runs on
  /// `front`, so gRPC's answer for it is always yes. If the response has no headers, retried_call
  /// tells the reactor itself. Also, gRPC must not be asked about headers that were cut off: see
  /// GrpcAccess::has_headers().
  virtual grpc::internal::Call stand_behind(grpc_call* front, const grpc::internal::Call& real) = 0;

  /// Fills a batch of a bound call: gives its operations to gRPC. `held`: a completion queue on
  /// which the caller has a hold; null: none (OpsScope).
  virtual void fill(grpc::internal::CallOpSetInterface* ops,
                    grpc::internal::Call* call,
                    grpc::CompletionQueue* held) = 0;

  /// A CallHook that only calls fill(), for a call that has failed or keeps its connection. This
  /// AttemptedCall as a hook would check the connection first.
  virtual grpc::internal::CallHook& filler() = 0;
};

}  // namespace signalbox::channel
