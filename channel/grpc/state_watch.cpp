// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/state_watch.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/impl/codegen/completion_queue_tag.h>

namespace signalbox::channel {
namespace {

grpc_connectivity_state to_grpc(ConnectivityState state) {
  switch (state) {
    case ConnectivityState::kIdle:
      return GRPC_CHANNEL_IDLE;
    case ConnectivityState::kConnecting:
      return GRPC_CHANNEL_CONNECTING;
    case ConnectivityState::kReady:
      return GRPC_CHANNEL_READY;
    case ConnectivityState::kTransientFailure:
      return GRPC_CHANNEL_TRANSIENT_FAILURE;
  }
  return GRPC_CHANNEL_TRANSIENT_FAILURE;
}

}  // namespace

// One wait of the application, by NotifyOnStateChange(). The StateWatch's list owns the tag. Once
// the tag is posted, the completion queue owns it too.
class StateWatch::Tag final : public grpc::internal::CompletionQueueTag,
                              public std::enable_shared_from_this<StateWatch::Tag> {
 public:
  Tag(std::shared_ptr<CallBinder> binder,
      grpc_connectivity_state last,
      grpc::CompletionQueue* cq,
      void* tag)
      : binder_(std::move(binder)), last_(last), cq_(cq), tag_(tag) {
    GrpcAccess::hold_cq(cq_);
    call_ =
        GrpcAccess::make_call(GrpcAccess::c_channel(binder_->anchor()), "/", context_, cq_->cq());
    GrpcAccess::set_call(context_, call_, nullptr);
  }

  grpc_connectivity_state last() const { return last_; }

  bool is_posted() const { return posted_.load(std::memory_order_acquire); }

  void set_alarm(gpr_timespec deadline) {
    alarm_.Set(deadline, [weak = weak_from_this()](bool is_over) {
      const auto self = weak.lock();
      if (is_over && self != nullptr) self->post(false);
    });
  }

  void post(bool ok) {
    if (posted_.exchange(true, std::memory_order_acq_rel)) return;
    ok_ = ok;
    in_queue_ = shared_from_this();
    grpc::CompletionQueue* const cq = cq_;
    grpc_call_start_batch(
        call_, nullptr, 0, static_cast<grpc::internal::CompletionQueueTag*>(this), nullptr);
    GrpcAccess::release_cq(cq);
  }

  bool FinalizeResult(void** tag, bool* status) override {
    *tag = tag_;
    *status = ok_;
    const auto last_reference = std::move(in_queue_);
    return true;
  }

 private:
  const std::shared_ptr<CallBinder> binder_;
  const grpc_connectivity_state last_;
  grpc::CompletionQueue* const cq_;
  void* const tag_;
  grpc::ClientContext context_;
  grpc_call* call_ = nullptr;
  grpc::Alarm alarm_;
  std::atomic<bool> posted_{false};
  bool ok_ = false;
  std::shared_ptr<Tag> in_queue_;
};

std::shared_ptr<StateWatch> StateWatch::over(std::shared_ptr<CallBinder> binder) {
  auto watch = std::make_shared<StateWatch>(std::move(binder));
  watch->binder_->connectivity().watch(watch, [weak = std::weak_ptr<StateWatch>(watch)] {
    if (const auto self = weak.lock()) self->changed();
  });
  return watch;
}

StateWatch::~StateWatch() {
  for (const auto& tag : tags_)
    tag->post(true);
}

grpc_connectivity_state StateWatch::state(bool try_to_connect) const {
  if (binder_->is_wrong_target()) return GRPC_CHANNEL_TRANSIENT_FAILURE;
  if (binder_->waiting().is_closed()) return GRPC_CHANNEL_SHUTDOWN;
  return to_grpc(binder_->connectivity().state(try_to_connect));
}

bool StateWatch::wait(grpc_connectivity_state last, gpr_timespec deadline) {
  const auto until = grpc::Timespec2Timepoint(deadline);
  const auto differs = [&] { return state(false) != last; };
  std::unique_lock lock(mutex_);
  if (until == std::chrono::system_clock::time_point::max()) {
    changed_.wait(lock, differs);
    return true;
  }
  return changed_.wait_until(lock, until, differs);
}

void StateWatch::notify(grpc_connectivity_state last,
                        gpr_timespec deadline,
                        grpc::CompletionQueue* cq,
                        void* tag) {
  const auto waiting = std::make_shared<Tag>(binder_, last, cq, tag);
  waiting->set_alarm(deadline);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(tags_, [](const auto& each) { return each->is_posted(); });
    tags_.push_back(waiting);
  }
  // The tag is in the list now. A later change of the state finds the tag there; a change before
  // that is found by this comparison. So no change is missed.
  if (state(false) != last) waiting->post(true);
}

void StateWatch::changed() {
  std::vector<std::shared_ptr<Tag>> fired;
  const grpc_connectivity_state now = state(false);
  {
    const std::lock_guard lock(mutex_);
    const auto differs = [&](const auto& tag) { return tag->last() != now; };
    std::copy_if(tags_.begin(), tags_.end(), std::back_inserter(fired), differs);
    std::erase_if(tags_, differs);
    changed_.notify_all();
  }
  for (const auto& tag : fired)
    tag->post(true);
}

}  // namespace signalbox::channel
