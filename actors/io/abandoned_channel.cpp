// SPDX-License-Identifier: Apache-2.0
#include "actors/io/abandoned_channel.hpp"

#include <chrono>
#include <utility>

#include <grpc/grpc.h>

#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_poller.hpp"

namespace signalbox::actors {
namespace {

// The longest wait for an IDLE channel. A channel that was asked to connect leaves IDLE at once,
// unless another thread has to start the attempt.
constexpr std::chrono::seconds kLongestIdle(1);

/// Keeps the channel until it is neither IDLE nor CONNECTING, or has been IDLE for kLongestIdle. A
/// keeper owns itself.
struct Keeper : grpc_completion_queue_functor {
  explicit Keeper(std::shared_ptr<grpc::Channel> to_keep) : channel(std::move(to_keep)) {
    functor_run = &Keeper::run;
    inlineable = 0;
  }

  static void run(grpc_completion_queue_functor* functor, int changed) {
    std::unique_ptr<Keeper> self(static_cast<Keeper*>(functor));
    // The channel stayed IDLE for kLongestIdle, so no attempt to connect is expected any more.
    const bool is_asleep = changed == 0;
    if (!is_asleep) keep(std::move(self));
  }

  static void keep(std::unique_ptr<Keeper> self) {
    grpc_channel* const channel = GrpcAccess::c_channel(*self->channel);
    const auto state = grpc_channel_check_connectivity_state(channel, /*try_to_connect=*/0);
    const bool is_idle = state == GRPC_CHANNEL_IDLE;
    if (!is_idle && state != GRPC_CHANNEL_CONNECTING) return;
    const gpr_timespec deadline =
        is_idle ? grpc_deadline(std::chrono::steady_clock::now() + kLongestIdle)
                : gpr_inf_future(GPR_CLOCK_MONOTONIC);
    grpc_completion_queue* const queue = self->interest.callback_queue();
    grpc_channel_watch_connectivity_state(channel, state, deadline, queue, self.release());
  }

  // Makes the poller serve the channel's socket. After the end of the runtime, this may be the only
  // Interest left.
  const GrpcPoller::Interest interest;
  const std::shared_ptr<grpc::Channel> channel;
};

}  // namespace

void abandon(std::shared_ptr<grpc::Channel> channel) {
  if (channel != nullptr) Keeper::keep(std::make_unique<Keeper>(std::move(channel)));
}

}  // namespace signalbox::actors
