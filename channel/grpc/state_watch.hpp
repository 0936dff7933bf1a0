// SPDX-License-Identifier: Apache-2.0
//
// StateWatch — GetState(), WaitForStateChange() and NotifyOnStateChange() of the drop-in channel.
//
//   connectivity_source ─▶ changed ─▶ [StateWatch] ─▶ waiting threads; tags on completion queues
//
// To put a tag on an application's completion queue, signalbox starts an empty batch of a temporary
// call on the anchor channel (a channel that never connects). From the beginning of the wait until
// that batch is started, signalbox has a hold on the queue (Shutdown() of the queue does not
// finish while there are holds).

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "channel/grpc/call_binder.hpp"

namespace signalbox::channel {

class StateWatch : public std::enable_shared_from_this<StateWatch> {
 public:
  /// Makes a StateWatch that watches the binder's connectivity source from now on.
  static std::shared_ptr<StateWatch> over(std::shared_ptr<CallBinder> binder);

  explicit StateWatch(std::shared_ptr<CallBinder> binder) : binder_(std::move(binder)) {}

  /// The channel is destroyed: puts all waiting tags on their queues.
  ~StateWatch();
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;

  /// The channel's state. SHUTDOWN once the runtime has ended (the wait list is then closed);
  /// always TRANSIENT_FAILURE for an invalid target.
  grpc_connectivity_state state(bool try_to_connect) const;

  /// Blocks until the state differs from `last`. False: the deadline came before a change.
  bool wait(grpc_connectivity_state last, gpr_timespec deadline);

  /// Puts `tag` on `cq` when the state differs from `last`, or, with ok = false, at the deadline.
  void notify(grpc_connectivity_state last,
              gpr_timespec deadline,
              grpc::CompletionQueue* cq,
              void* tag);

 private:
  class Tag;

  void changed();

  const std::shared_ptr<CallBinder> binder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Tag>> tags_;
};

}  // namespace signalbox::channel
