// SPDX-License-Identifier: Apache-2.0
//
// CallBinder — the part that all calls of a channel share: it asks the router for a pick, decides
// by the pick what happens to the call, and makes the grpc_call on the picked connection. Running
// calls own the CallBinder too, so it outlives its channel.
//
//   grpc_channel, queued_call, attempts ─▶ pick, judge ─▶ bind | fail ─▶ grpc::internal::Call

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "actors/io/call_reach.hpp"
#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/grpc_poller.hpp"
#include "channel/grpc/attempt.hpp"
#include "channel/grpc/channel_options.hpp"
#include "lb/pick/stream_lanes.hpp"

namespace signalbox::channel {

/// The arguments of a stub that makes a call.
struct CallSite {
  const grpc::internal::RpcMethod& method;
  grpc::ClientContext& context;
  grpc::CompletionQueue* cq = nullptr;
  std::shared_ptr<grpc::ChannelInterface> channel;
  /// The index of the first interceptor that sees the call. Above 0 when an interceptor itself
  /// makes the call: only the interceptors behind that interceptor see the call.
  std::size_t position = 0;
};

/// The interceptors of a call. `interceptor` is signalbox's own call interceptor; null: the call
/// has none (see CallBinder::intercepts()).
struct Interception {
  grpc::experimental::ClientRpcInfo* info = nullptr;
  AttemptedCall* interceptor = nullptr;
};

/// Stores a pointer to the call interceptor in the context. Called while gRPC makes the
/// interceptors of the context: gRPC does not return them to the channel, so the channel reads the
/// pointer from the context afterwards. The pointer is removed when the context gets its call.
[[gnu::hot]] void attach_interceptor(grpc::ClientContext& context, AttemptedCall& interceptor);

enum class Verdict { kBind, kWait, kFail };  ///< What happens to a call after a pick: see judge().

class CallBinder final : public grpc::internal::CallHook,
                         public std::enable_shared_from_this<CallBinder> {
 public:
  /// Precondition: the last interceptor factory in `options` makes the call interceptor.
  explicit CallBinder(GrpcChannelOptions options);

  /// Makes the CallIntent of a call that begins under `context`. Clears wait_for_ready in the
  /// context, because signalbox itself lets the call wait. On a connection that has just died, gRPC
  /// would let a wait_for_ready call wait forever. Converts the context's deadline to the monotonic
  /// clock: while the call waits, and between its attempts, a step of the wall clock must not move
  /// the deadline.
  [[gnu::hot]] static CallIntent begin(grpc::ClientContext& context);

  /// Removes from the context metadata that would make gRPC end the process, and an authority that
  /// is no valid header value. The status names the fault, or an invalid method, without a byte of
  /// any value. The call must then fail with this status. OK: everything can be sent.
  [[gnu::hot]] static absl::Status refuse_unsendable(const char* method,
                                                     grpc::ClientContext& context);

  /// Asks the router for a pick, for the first time or again. Once the route is known, the route's
  /// timeout shortens the context's deadline, and headers of filters are added to the metadata.
  /// Returns true when the deadline was shortened.
  [[gnu::hot]] bool pick(CallIntent& intent, const char* path, grpc::ClientContext& context) const;

  /// Decides by the intent's pick whether the call is bound to the picked connection (kBind),
  /// waits, or fails. If the connection has died since the pick, calls put_off() and returns kWait.
  /// If the endpoint may have several connections, the call takes a stream, and gets the stream's
  /// connection; if all streams are in use, returns kWait, and the pick stays complete.
  static Verdict judge(CallIntent& intent);

  /// The lanes of which a call with this complete pick takes a stream; null: it takes none, or has
  /// taken one.
  [[gnu::hot]] static const lb::StreamLanes* lanes(const CallIntent& intent);

  /// Whether the call gets a call interceptor. A call interceptor checks before the first batch
  /// whether the connection is still up.
  [[gnu::hot]] bool intercepts(const CallSite& site) const {
    return site.position < creators_.size();
  }

  /// Records that the picked connection died before the call was sent. The call needs another pick,
  /// which avoids the connection's address if it reads the same snapshot (CallIntent::lost).
  static void put_off(CallIntent& intent);

  /// Whether the picked connection is up now.
  [[gnu::hot]] static bool is_alive(const CallIntent& intent);

  /// Makes the call on the picked connection. Afterwards the call interceptor owns the intent, or,
  /// if the call has none, the call's context does.
  [[gnu::hot]] grpc::internal::Call bind(CallIntent intent, CallSite&& site);

  /// Makes a call that has already failed with `status`. If the outcome of the pick is kFail and
  /// the call has a retry policy, moves the intent to the call interceptor, which may retry.
  grpc::internal::Call fail(const absl::Status& status, CallIntent& intent, const CallSite& site);

  /// If the context has call credentials that the intent's connection would drop silently, ends
  /// `call` with UNAUTHENTICATED, as gRPC's own plaintext channel does. Called again before the
  /// first batch: an interceptor may have set the credentials.
  [[gnu::hot]] static void refuse_credentials(const CallIntent& intent,
                                              const grpc::ClientContext& context,
                                              grpc_call* call);

  // Steps of bind() and fail(). QueuedCall and Attempts call these functions directly, for calls
  // that wait or are retried.

  /// Makes the context's interceptors: those of with_call_interceptor() from site.position on, then
  /// gRPC's global interceptor.
  [[gnu::hot]] Interception intercept(const CallSite& site) const;

  /// Makes a call on the picked connection.
  [[gnu::hot]] grpc_call* connect(const CallIntent& intent,
                                  const char* method,
                                  const grpc::ClientContext& context,
                                  grpc::CompletionQueue& cq) const;

  /// Makes a grpc_call that has already failed with `status`. It has no deadline and no parent
  /// call, so it cannot fail for another reason. The caller owns the reference.
  grpc_call* refuse(const absl::Status& status,
                    const char* method,
                    grpc::CompletionQueue& cq) const;

  /// The call has been bound: moves its intent to its call interceptor. Without a call interceptor
  /// the caller keeps the intent.
  [[gnu::hot]] void hand_over(CallIntent& intent, AttemptedCall* interceptor);

  /// Like hand_over(), for a call without a connection. Does nothing unless the call's retry policy
  /// may apply.
  void hand_over_failed(CallIntent& intent, AttemptedCall* interceptor);

  static bool has_connection(const CallIntent& intent) {
    return intent.pick.outcome() == PickOutcome::kComplete;
  }

  /// The counters for the attempts of a call; null: the call has no connection, or calls are not
  /// counted.
  [[gnu::hot]] static const CallStats* stats(const CallIntent& intent);

  /// Reports the end of an attempt to the counters and policies. If another attempt follows,
  /// prepares the intent for the next pick, and returns the delay before the next attempt. nullopt:
  /// the call ends with the attempt's status.
  [[gnu::hot]] std::optional<Duration> retry(CallIntent& intent, const EndedAttempt& ended) const;

  /// Returns `why` with the target and the cluster in its text, as all errors of picks have them
  /// (lb::Router::describe()). For calls that end for another reason than their pick.
  absl::Status describe(const absl::Status& why, const CallIntent& intent) const;

  /// The status of calls that are made after the runtime's end (the wait list is then closed): the
  /// error of the last snapshot, or else that the runtime has been shut down.
  absl::Status closed() const;

  std::uint64_t sequence() const { return options_.router.sequence(); }

  WaitList& waiting() const { return *options_.waiting; }

  const ChannelCounts& counts() const { return *options_.counts; }

  /// Counts the channel's calls as the application sees them; null: calls are not counted.
  const CallerStats* callers() const { return options_.callers.get(); }

  ConnectivitySource& connectivity() const { return *options_.connectivity; }

  bool is_wrong_target() const { return options_.is_wrong_target; }

  /// The most bytes of a request that a retry policy may send again.
  std::size_t retry_buffer_bytes() const { return options_.retry_buffer_bytes; }

  /// A channel that never connects. Failed and waiting calls are made on it.
  grpc::Channel& anchor() const { return *anchor_; }

  const actors::GrpcPoller::Hold& poller() const { return poller_; }

  /// Whether `cq` is the queue of the callback API.
  bool is_callback_cq(const grpc::CompletionQueue* cq) const { return cq == callback_cq_; }

  /// The queue of the callback API. Its first use starts threads of gRPC, which wait for events on
  /// the sockets of the whole process. These threads can then also take the responses of other
  /// calls, before the threads that wait for these responses. So only calls of the callback API may
  /// use this queue.
  grpc::CompletionQueue* callback_cq();

  /// Fills a batch of a call that has no call interceptor. Such a call cannot change its
  /// connection.
  [[gnu::hot]] void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                                     grpc::internal::Call* call) override;

 private:
  static Verdict take_stream(CallIntent& intent, const lb::StreamLanes& streams);
  void name_endpoint(const CallIntent& intent,
                     actors::Reach reach,
                     const EndedAttempt& ended) const;

  // The creators of the channel's interceptors, from with_call_interceptor().
  const GrpcAccess::Creators creators_;
  const GrpcChannelOptions options_;
  // Declared before the gRPC objects, so that it is destroyed after them.
  const actors::GrpcPoller::Hold poller_;
  const std::shared_ptr<grpc::Channel> anchor_;
  /// The queue of the callback API; null: not used yet.
  std::atomic<grpc::CompletionQueue*> callback_cq_{nullptr};
};

}  // namespace signalbox::channel
