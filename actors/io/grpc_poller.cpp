// SPDX-License-Identifier: Apache-2.0
#include "actors/io/grpc_poller.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

namespace signalbox::actors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPace = std::chrono::milliseconds(10);
constexpr auto kPaceWhileServed = std::chrono::milliseconds(50);
constexpr auto kHurry = std::chrono::milliseconds(100);

}  // namespace

class GrpcPoller::Poller {
 public:
  // Never destroyed; see the header.
  static Poller& instance() {
    static auto* const poller = new Poller;
    return *poller;
  }

  void begin_interest() {
    const std::lock_guard lock(interest_mutex_);
    if (++interests_ > 1) return;
    if (thread_.joinable()) thread_.join();  // A Tag had the last interest.
    std::uint64_t run_number = 0;
    {
      const std::lock_guard start(mutex_);
      run_number = ++running_;
    }
    thread_ = std::thread([this, run_number] { run(run_number); });
  }

  void end_interest() {
    const std::lock_guard lock(interest_mutex_);
    if (--interests_ > 0) return;
    {
      const std::lock_guard stop(mutex_);
      ++running_;
    }
    news_.notify_all();
    // A Tag is on the thread itself, which then ends on its own and is joined by the next run.
    if (thread_.get_id() != std::this_thread::get_id()) thread_.join();
  }

  void hurry() {
    const std::lock_guard lock(mutex_);
    const bool is_asleep = Clock::now() >= hurry_until_;
    hurry_until_ = Clock::now() + kHurry;
    if (is_asleep) news_.notify_all();
  }

  grpc::CompletionQueue& queue() { return queue_; }

  grpc_completion_queue* callback_queue() { return callback_queue_; }

  std::uint64_t looks() const { return looks_; }

 private:
  // Until another run is the present one.
  void run(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    while (running_ == number) {
      const bool is_hurried = Clock::now() < hurry_until_;
      lock.unlock();
      ++looks_;
      // gRPC rounds deadlines up: with "now" this would wait for a millisecond, and whoever waits
      // takes the answers of the application's threads.
      const bool was_news = serve(is_hurried ? grpc_deadline(Clock::now() + kPace)
                                             : gpr_inf_past(GPR_CLOCK_MONOTONIC));
      const bool is_served = served.exchange(0, std::memory_order_relaxed) >= kOften;
      // One piece of news is often followed by another.
      const bool may_rest = is_served && !was_news && !is_hurried;
      lock.lock();
      news_.wait_for(lock, may_rest ? kPaceWhileServed : kPace, [this, number] {
        return running_ != number || Clock::now() < hurry_until_;
      });
    }
  }

  // Returns whether a Tag has heard of anything.
  bool serve(gpr_timespec until) {
    void* tag = nullptr;
    bool ok = false;
    bool was_news = false;
    while (queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
      static_cast<GrpcPoller::Tag*>(tag)->done(ok);
      was_news = true;
    }
    return was_news;
  }

  grpc::CompletionQueue queue_;
  grpc_completion_queue* const callback_queue_ =
      grpc_completion_queue_create_for_callback(nullptr, nullptr);

  std::mutex interest_mutex_;  ///< Guards the next two.
  int interests_ = 0;
  std::thread thread_;

  std::atomic<std::uint64_t> looks_ = 0;

  std::mutex mutex_;  ///< Guards all below.
  std::condition_variable news_;
  std::uint64_t running_ = 0;  ///< The number of the thread's run; another one when it is to end.
  Clock::time_point hurry_until_;
};

namespace {

// What gRPC writes a call's end into. Never run inline: whoever cancels a call may hold the mutex
// of its context.
struct CallEnd : grpc_completion_queue_functor {
  explicit CallEnd(std::function<void(const absl::Status&)> to) : ended(std::move(to)) {
    functor_run = &CallEnd::run;
    inlineable = 0;
    grpc_metadata_array_init(&metadata);
  }

  ~CallEnd() {
    grpc_slice_unref(details);
    grpc_metadata_array_destroy(&metadata);
  }

  CallEnd(const CallEnd&) = delete;
  CallEnd& operator=(const CallEnd&) = delete;

  static void run(grpc_completion_queue_functor* functor, int) {
    const std::unique_ptr<CallEnd> self(static_cast<CallEnd*>(functor));
    char* const text = grpc_slice_to_c_string(self->details);
    const absl::Status status(static_cast<absl::StatusCode>(self->code), text);
    gpr_free(text);
    self->ended(status);
  }

  std::function<void(const absl::Status&)> ended;
  grpc_metadata_array metadata;
  grpc_status_code code = GRPC_STATUS_UNKNOWN;
  grpc_slice details = grpc_empty_slice();
};

}  // namespace

GrpcPoller::Interest::Interest() {
  Poller::instance().begin_interest();
}

GrpcPoller::Interest::~Interest() {
  Poller::instance().end_interest();
}

grpc::CompletionQueue& GrpcPoller::queue() {
  return Poller::instance().queue();
}

grpc_completion_queue* GrpcPoller::callback_queue() {
  return Poller::instance().callback_queue();
}

void GrpcPoller::hurry() {
  Poller::instance().hurry();
}

std::uint64_t GrpcPoller::looks() {
  return Poller::instance().looks();
}

gpr_timespec grpc_deadline(Instant deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(left.count(), GPR_TIMESPAN));
}

void watch_end(grpc_call* call, bool send, std::function<void(const absl::Status& status)> ended) {
  auto* const end = new CallEnd(std::move(ended));
  std::array<grpc_op, 2> ops{};
  ops[0].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[0].data.recv_status_on_client = {&end->metadata, &end->code, &end->details, nullptr};
  ops[1].op = GRPC_OP_SEND_INITIAL_METADATA;
  grpc_call_start_batch(call, ops.data(), send ? 2 : 1, end, nullptr);
}

}  // namespace signalbox::actors
