// SPDX-License-Identifier: Apache-2.0
#include "actors/io/callback_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>
#include <thread>

#include <grpc/support/cpu.h>
#include <grpcpp/create_channel.h>

#include "actors/io/grpc_access.hpp"

namespace signalbox::actors {
namespace {

// The number of callback threads that gRPC 1.51 starts.
std::size_t count_of_threads() {
  return std::clamp(gpr_cpu_num_cores() / 2, 2U, 16U);
}

}  // namespace

// Records which threads of the callback API have run a Visit, a functor that gRPC runs on one of
// these threads. A thread runs one function at a time, so a thread that runs a Visit has returned
// from its earlier callbacks. Once every thread has run a Visit, no thread is in a callback from
// before the first Visit.
class CallbackThreads::Visits {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
  }

  // Called by a Visit, on a thread of gRPC. Blocks that thread until every thread has run a Visit
  // or the wait is over, so that the next Visit runs on another thread.
  void visit() {
    std::unique_lock lock(mutex_);
    seen_.insert(std::this_thread::get_id());
    if (is_complete()) changed_.notify_all();
    changed_.wait(lock, [this] { return !is_open_ || is_complete(); });
  }

  // Waits for at most `patience`. Returns whether every thread has run a Visit.
  bool close_after(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return is_complete(); });
    is_open_ = false;
    changed_.notify_all();
    return is_complete();
  }

  std::size_t wanted() const { return wanted_; }

 private:
  bool is_complete() const { return seen_.size() >= wanted_; }

  const std::size_t wanted_ = count_of_threads();
  std::mutex mutex_;  ///< Guards the members below.
  std::condition_variable changed_;
  std::set<std::thread::id> seen_;
  bool is_open_ = false;
};

// Runs once, on one of the callback threads: gRPC runs it as the completion of an empty batch.
struct CallbackThreads::Visit : grpc_completion_queue_functor {
  Visit(std::shared_ptr<Visits> to, grpc_call* carrier) : visits(std::move(to)), call(carrier) {
    functor_run = &Visit::run;
    inlineable = 0;
  }

  static void run(grpc_completion_queue_functor* functor, int) {
    const std::unique_ptr<Visit> self(static_cast<Visit*>(functor));
    self->visits->visit();
    grpc_call_unref(self->call);
  }

  const std::shared_ptr<Visits> visits;
  grpc_call* const call;
};

CallbackThreads::CallbackThreads()
    : channel_(grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials())),
      queue_(*GrpcAccess::callback_cq(*channel_)),
      visits_(std::make_shared<Visits>()) {}

CallbackThreads::~CallbackThreads() = default;

bool CallbackThreads::have_come_back(std::chrono::milliseconds patience) {
  visits_->open();
  for (std::size_t i = 0; i < visits_->wanted(); ++i) {
    grpc_call* const call = GrpcAccess::make_bare_call(*channel_, "/", queue_);
    grpc_call_start_batch(call, nullptr, 0, new Visit(visits_, call), nullptr);
  }
  return visits_->close_after(patience);
}

}  // namespace signalbox::actors
