// SPDX-License-Identifier: Apache-2.0
//
// CallBinder — what is common to all calls of a channel: asks the router, judges its answer, and
// makes the grpc_call that carries it out. Calls share it, so it outlives the channel that made it.
//
//   grpc_channel, queued_call, retried_call ─▶ pick, judge ─▶ bind | fail ─▶ grpc::internal::Call

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/grpc_poller.hpp"
#include "channel/grpc/grpc_channel.hpp"

namespace signalbox::channel {

/// A call on its way to a connection: what all its picks have in common, and the last of them.
struct CallIntent {
  std::uint64_t seed = 0;
  bool wait_for_ready = false;
  gpr_timespec started{};
  bool is_picked = false;
  bool is_put_off = false;  ///< The pick had a connection, which has died.
  bool is_limited = false;  ///< The pick's timeout has been applied to the deadline.
  /// Set in an attempt of retried_call, which gets the intent when the attempt is bound or its pick
  /// failed, and observes it itself.
  std::optional<CallIntent>* attempt = nullptr;
  lb::RetryState retry;
  TriedAddresses tried;  ///< By attempts that are over; kept only where retries avoid them.
  lb::Pick pick;
  std::string authority;  ///< As the pick says (A81); empty: it does not.
};

/// How an attempt of a call ended.
struct EndedAttempt {
  grpc::ClientContext& context;  ///< With all that it received.
  grpc::Status& status;          ///< retry() words it in our form if the call ends with it.
  std::optional<std::size_t> request_bytes;  ///< nullopt: the request is gone.
  bool is_wanted = true;  ///< The call can be made again, and the application has not cancelled it.
  bool was_taken = true;  ///< A transport may have had it; see actors::reach_of().
};

/// While it lives, the next call that this thread makes on a channel has this intent.
class AttemptScope {
 public:
  explicit AttemptScope(CallIntent intent);
  ~AttemptScope();
  AttemptScope(const AttemptScope&) = delete;
  AttemptScope& operator=(const AttemptScope&) = delete;

 private:
  CallIntent intent_;
};

/// What a stub says when it makes a call.
struct CallSite {
  const grpc::internal::RpcMethod& method;
  grpc::ClientContext& context;
  grpc::CompletionQueue* cq = nullptr;
  std::shared_ptr<grpc::ChannelInterface> channel;
  std::size_t position = 0;  ///< Of the first interceptor: more than 0 in a call of another's.
};

class CallObserver;

/// The interceptors of a call, with the observer among them: null where they begin below it.
struct Interception {
  grpc::experimental::ClientRpcInfo* info = nullptr;
  CallObserver* observer = nullptr;
};

enum class Verdict { kBind, kWait, kFail };

class CallBinder final : public grpc::internal::CallHook,
                         public std::enable_shared_from_this<CallBinder> {
 public:
  explicit CallBinder(GrpcChannelOptions options);

  /// The intent of a call that begins under `context`: a new one, or the AttemptScope's. The
  /// context loses its wait_for_ready: a call that waits inside a channel that has just died would
  /// wait there for ever, so the waiting is ours to do. Its deadline becomes one by the real-time
  /// clock: gRPC compares those of one clock only, and later attempts have the same.
  [[gnu::hot]] static CallIntent begin(grpc::ClientContext& context);

  /// Takes metadata out of the context that gRPC would not send, but end the process for, and an
  /// authority that is no header's value. The status says what it was, or that the method is none,
  /// without a byte of any value; it is what the call is to fail with. OK: nothing is wrong.
  [[gnu::hot]] static absl::Status refuse_unsendable(const char* method,
                                                     grpc::ClientContext& context);

  /// Asks the router (again). Once the route is known, the context's deadline is shortened by its
  /// timeout, and its metadata gets what filters add. Returns true when it shortened it.
  [[gnu::hot]] bool pick(CallIntent& intent, const char* path, grpc::ClientContext& context) const;

  /// What follows from the intent's pick. A connection that has died since is worth waiting for:
  /// the pick is put off.
  static Verdict judge(CallIntent& intent);

  /// Whether the call gets an observer, which asks again whether its connection is up.
  [[gnu::hot]] bool observes(const CallIntent& intent, const CallSite& site) const;

  /// The picked connection has died before the call was sent: the call waits.
  static void put_off(CallIntent& intent);

  /// Whether the picked connection is up at this moment.
  [[gnu::hot]] static bool is_alive(const CallIntent& intent);

  /// The call on the picked connection, with an observer that owns the intent.
  [[gnu::hot]] grpc::internal::Call bind(CallIntent intent, CallSite&& site);

  /// A call that has failed with `status` already. If its pick failed and it has a retry policy,
  /// its observer gets the intent.
  grpc::internal::Call fail(const absl::Status& status, CallIntent& intent, const CallSite& site);

  // The parts of these, for a call whose context has one already.

  /// Makes the context's interceptors: the application's, the observer, and gRPC's global one.
  /// An attempt has none: they run for the call that it stands for.
  [[gnu::hot]] Interception intercept(const CallIntent& intent, const CallSite& site) const;

  /// A call on the picked connection.
  [[gnu::hot]] grpc_call* connect(const CallIntent& intent,
                                  const char* method,
                                  const grpc::ClientContext& context,
                                  grpc::CompletionQueue& cq) const;

  /// A call that has failed, and by nothing else than `status`.
  grpc_call* refuse(const absl::Status& status,
                    const char* method,
                    grpc::CompletionQueue& cq) const;

  /// Gives the intent of a bound call to whoever observes it. Nobody: it stays, and is the
  /// caller's to keep.
  [[gnu::hot]] void hand_over(CallIntent& intent, CallObserver* observer);

  /// As hand_over, of a call that no connection has: only if its retry policy may be for it.
  void hand_over_failed(CallIntent& intent, CallObserver* observer);

  /// Where the attempts of a call are counted; null: it has no connection.
  [[gnu::hot]] static const CallStats* stats(const CallIntent& intent);

  /// An attempt has ended: tells those who count it, and says after how long another is to follow,
  /// which the intent is then made ready for. nullopt: none, and the call ends with that status.
  [[gnu::hot]] std::optional<Duration> retry(CallIntent& intent, const EndedAttempt& ended) const;

  /// Why a call ends that no pick has failed; see lb::Router::describe().
  absl::Status describe(const absl::Status& why, const CallIntent& intent) const;

  /// Once the wait list is closed: as the last snapshot says.
  absl::Status closed() const;

  std::uint64_t sequence() const { return options_.router.sequence(); }

  WaitList& waiting() const { return *options_.waiting; }

  const ChannelCounts& counts() const { return *options_.counts; }

  ConnectivitySource& connectivity() const { return *options_.connectivity; }

  bool is_wrong_target() const { return options_.is_wrong_target; }

  /// Requests that are larger are not retried by policy.
  std::size_t retry_buffer_bytes() const { return options_.retry_buffer_bytes; }

  /// A channel that never connects: on it live the calls that fail, and those that wait.
  grpc::Channel& anchor() const { return *anchor_; }

  const actors::GrpcPoller::Hold& poller() const { return poller_; }

  /// Whether that is the queue of the callback API.
  bool is_callback_cq(const grpc::CompletionQueue* cq) const { return cq == callback_cq_; }

  /// The queue of the callback API. Whoever asks for it starts threads of gRPC's that wait for the
  /// sockets of the whole process, and take the answers of all other calls first: so nobody does
  /// but who uses that API.
  grpc::CompletionQueue* callback_cq();

  /// Fills the ops of a call that stays where it is; the observer learns which they are.
  [[gnu::hot]] void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                                     grpc::internal::Call* call) override;

 private:
  void name_endpoint(const CallIntent& intent,
                     actors::Reach reach,
                     const EndedAttempt& ended) const;

  const GrpcAccess::Creators creators_;  // The application's, and the observer's.
  const GrpcChannelOptions options_;
  const actors::GrpcPoller::Hold poller_;  // What is gRPC's of this, and of its calls, ends before.
  const std::shared_ptr<grpc::Channel> anchor_;
  std::atomic<grpc::CompletionQueue*> callback_cq_{nullptr};  ///< Null: nobody has asked for it.
};

/// A channel for the attempts of calls that are known already; it has no state to be watched.
std::shared_ptr<grpc::ChannelInterface> channel_over(std::shared_ptr<CallBinder> binder);

}  // namespace signalbox::channel
