// SPDX-License-Identifier: Apache-2.0
//
// CallBinder — what is common to all calls of a channel: asks the router, judges its answer, and
// makes the grpc_call that carries it out. Calls share it, so it outlives the channel that made it.
//
//   grpc_channel, queued_call, unsent_call ─▶ pick, judge ─▶ bind | fail ─▶ grpc::internal::Call

#pragma once

#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_access.hpp"
#include "channel/grpc_channel.hpp"

namespace signalbox::channel {

/// A call on its way to a connection: what all its picks have in common, and the last of them.
struct CallIntent {
  std::uint64_t seed = 0;
  bool wait_for_ready = false;
  gpr_timespec started{};
  bool is_picked = false;
  bool is_limited = false;  ///< The pick's timeout has been applied to the deadline.
  /// Set in an attempt of unsent_call, which takes the intent back if this one is not sent either.
  std::optional<CallIntent>* unsent = nullptr;
  lb::Pick pick;
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

enum class Verdict { kBind, kWait, kFail };

class CallBinder final : public grpc::internal::CallHook,
                         public std::enable_shared_from_this<CallBinder> {
 public:
  explicit CallBinder(GrpcChannelOptions options);

  /// The intent of a call that begins under `context`: a new one, or the AttemptScope's. The
  /// context loses its wait_for_ready: a call that waits inside a channel that has just died would
  /// wait there for ever, so the waiting is ours to do.
  static CallIntent begin(grpc::ClientContext& context);

  /// Asks the router (again), and shortens the context's deadline once the route's timeout is
  /// known. Returns true when it shortened it.
  bool pick(CallIntent& intent, const char* path, grpc::ClientContext& context) const;

  /// What follows from the intent's pick. A connection that has died since is worth waiting for.
  static Verdict judge(const CallIntent& intent);

  /// The call on the picked connection, with an observer that owns the intent. `own` is the
  /// context of that call, `user` the one that the application holds; mostly the same.
  grpc::internal::Call bind(CallIntent intent,
                            const grpc::internal::RpcMethod& method,
                            grpc::ClientContext& own,
                            grpc::ClientContext& user,
                            grpc::CompletionQueue* cq);

  /// A call that has failed with `status` already; `observed`: its batches run an interceptor.
  grpc::internal::Call fail(const absl::Status& status,
                            const grpc::internal::RpcMethod& method,
                            grpc::ClientContext& context,
                            grpc::CompletionQueue* cq,
                            bool observed = false);

  /// Why the pick failed, for those who read logs (A57): with the cluster, the target and the
  /// node's id, where the text does not have them already.
  absl::Status failure(const lb::Pick& pick) const;
  absl::Status explained(const absl::Status& status, const std::string& cluster = {}) const;

  /// Once the wait list is closed: as the last snapshot says.
  absl::Status closed() const;

  std::uint64_t sequence() const { return options_.router.sequence(); }

  WaitList& waiting() const { return *options_.waiting; }

  const ChannelCounts& counts() const { return *options_.counts; }

  ConnectivitySource& connectivity() const { return *options_.connectivity; }

  /// A channel that never connects: on it live the calls that fail, and those that wait.
  grpc::Channel& anchor() const { return *anchor_; }

  /// Fills the ops of a bound call; the observer learns which they are.
  void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                        grpc::internal::Call* call) override;

 private:
  const GrpcChannelOptions options_;
  const std::shared_ptr<grpc::Channel> anchor_;
};

/// A channel for the attempts of calls that are known already; it has no state to be watched.
std::shared_ptr<grpc::ChannelInterface> channel_over(std::shared_ptr<CallBinder> binder);

}  // namespace signalbox::channel
