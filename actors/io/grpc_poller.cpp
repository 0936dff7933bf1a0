// SPDX-License-Identifier: Apache-2.0
#include "actors/io/grpc_poller.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include "actors/io/callback_threads.hpp"

namespace signalbox::actors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPace = std::chrono::milliseconds(10);
constexpr auto kPaceWhileServed = std::chrono::milliseconds(50);
constexpr auto kHurry = std::chrono::milliseconds(100);

// The least time between the end of the last Hold and the end of the poller. gRPC's threads finish
// their work in this time, so that none of them is the thread that shuts gRPC down.
constexpr auto kGrace = std::chrono::milliseconds(50);

// kVisit is the longest time for which one try blocks idle threads of the callback API
// (CallbackThreads::have_come_back). The pause before the next try is kBetweenVisits at first, and
// doubles up to kMostBetweenVisits.
constexpr auto kVisit = std::chrono::milliseconds(5);
constexpr auto kBetweenVisits = std::chrono::milliseconds(10);
constexpr auto kMostBetweenVisits = std::chrono::milliseconds(1000);

// The longest wait for the reason of a channel's failure.
constexpr auto kLongestFailure = std::chrono::seconds(1);

// At the exit of the process, the longest wait for a poller that is ending.
constexpr auto kExitPatience = std::chrono::seconds(1);

}  // namespace

class GrpcPoller::Poller {
 public:
  Poller() {
    // The functor that gRPC calls, on a thread of its executor, when the last operation on the
    // queue has ended.
    struct Shutdown : grpc_completion_queue_functor {
      std::promise<void> is_shut_down;

      static void run(grpc_completion_queue_functor* functor, int) {
        const std::unique_ptr<Shutdown> self(static_cast<Shutdown*>(functor));
        self->is_shut_down.set_value();
      }
    };

    auto* const shutdown = new Shutdown;
    shutdown->functor_run = &Shutdown::run;
    shutdown->inlineable = 0;
    callback_queue_is_shut_down_ = shutdown->is_shut_down.get_future();
    callback_queue_ = grpc_completion_queue_create_for_callback(shutdown, nullptr);
  }

  // Runs on a plain thread (P2 of grpc_poller.hpp). Precondition: there is no Hold, and may_end()
  // has returned true.
  ~Poller() {
    // If a Tag on the poller's thread destroyed the last Interest, the Tag could not join its own
    // thread.
    if (thread_.joinable()) thread_.join();
    callback_threads_.reset();
    grpc_completion_queue_shutdown(callback_queue_);
    callback_queue_is_shut_down_.wait();
    grpc_completion_queue_destroy(callback_queue_);
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok))
      static_cast<GrpcPoller::Tag*>(tag)->done(ok);
  }

  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Returns the process's poller. Makes the poller if there is none.
  static std::shared_ptr<Poller> share();

  // Whether the poller may end now: every thread of the callback API has left its callbacks. Blocks
  // for at most kVisit. Precondition: there is no Hold.
  bool may_end() {
    return callback_threads_ == nullptr || callback_threads_->have_come_back(kVisit);
  }

  void keep_callback_threads() {
    const std::lock_guard lock(callback_threads_mutex_);
    if (callback_threads_ == nullptr) callback_threads_ = std::make_unique<CallbackThreads>();
  }

  void begin_interest() {
    std::thread ended;
    {
      const std::lock_guard lock(interest_mutex_);
      if (++interests_ > 1) return;
      // If a Tag on the poller's thread ended the last Interest and now begins a new one, the
      // thread continues.
      const bool is_own = thread_.get_id() == std::this_thread::get_id();
      if (!is_own) ++run_number_;
      {
        const std::lock_guard start(mutex_);
        running_ = run_number_;
      }
      if (is_own) return;
      ended = std::exchange(thread_, std::thread([this, number = run_number_] { run(number); }));
    }
    // If a Tag on the poller's thread destroyed the last Interest, the Tag could not join its own
    // thread.
    if (ended.joinable()) ended.join();
  }

  void end_interest() {
    std::thread ended;
    {
      const std::lock_guard lock(interest_mutex_);
      if (--interests_ > 0) return;
      {
        const std::lock_guard stop(mutex_);
        running_ = 0;
      }
      news_.notify_all();
      // If the caller is a Tag on the poller's thread, that thread ends by itself and is joined
      // later.
      if (thread_.get_id() != std::this_thread::get_id()) ended = std::move(thread_);
    }
    if (ended.joinable()) ended.join();
  }

  void hurry() {
    const std::lock_guard lock(mutex_);
    const bool is_asleep = Clock::now() >= hurry_until_;
    hurry_until_ = Clock::now() + kHurry;
    if (is_asleep) news_.notify_all();
  }

  grpc::CompletionQueue& queue() { return queue_; }

  grpc_completion_queue* callback_queue() { return callback_queue_; }

 private:
  // The body of the thread. A run lasts from the first Interest to the end of the last one. Returns
  // when this run is stopped or a later run begins.
  void run(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    while (running_ == number) {
      const bool is_hurried = Clock::now() < hurry_until_;
      lock.unlock();
      ++look_count;
      // With a deadline in the past, gRPC returns at once. With "now" it would wait for a
      // millisecond, because it rounds deadlines up. A waiting thread takes responses away from the
      // application's threads.
      const bool was_news = serve(is_hurried ? grpc_deadline(Clock::now() + kPace)
                                             : gpr_inf_past(GPR_CLOCK_MONOTONIC));
      const bool is_served = served.exchange(0, std::memory_order_relaxed) >= kOften;
      // After a completion the next poll comes after kPace, because another completion often
      // follows.
      const bool may_rest = is_served && !was_news && !is_hurried;
      lock.lock();
      news_.wait_for(lock, may_rest ? kPaceWhileServed : kPace, [this, number] {
        return running_ != number || Clock::now() < hurry_until_;
      });
    }
  }

  // Waits for completions until `until`, and runs their Tags. Returns whether there was a
  // completion.
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
  grpc_completion_queue* callback_queue_ = nullptr;
  std::future<void> callback_queue_is_shut_down_;

  std::mutex callback_threads_mutex_;
  /// Null: no call has used the callback API yet.
  std::unique_ptr<CallbackThreads> callback_threads_;

  std::mutex interest_mutex_;  ///< Guards the next three members.
  int interests_ = 0;
  std::thread thread_;
  std::uint64_t run_number_ = 0;  ///< The number of the newest run of the thread.

  std::mutex mutex_;  ///< Guards the members below.
  std::condition_variable news_;
  std::uint64_t running_ = 0;  ///< The number of the current run; 0: none.
  Clock::time_point hurry_until_;
};

// The plain thread on which pollers end, one after another. It lives while pollers are ending.
class GrpcPoller::Ends {
 public:
  // The instance is never destroyed, because a poller may lose its last Hold at any time.
  static Ends& instance() {
    static auto* const ends = new Ends;
    static const AtExit at_exit;
    return *ends;
  }

  void add(Poller* poller) {
    const std::lock_guard lock(mutex_);
    pollers_.emplace_back(poller);
    if (is_exiting_ || std::exchange(is_running_, true)) return;
    // An earlier thread may still have to be joined; its run() has ended.
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this] { run(); });
  }

 private:
  // Ends the thread at the exit of the process (P3 of grpc_poller.hpp). A poller that has not begun
  // to end is not destroyed.
  struct AtExit {
    ~AtExit() { instance().exit(); }
  };

  void exit() {
    std::unique_lock lock(mutex_);
    is_exiting_ = true;
    changed_.notify_all();
    const bool is_over = changed_.wait_for(lock, kExitPatience, [this] { return !is_running_; });
    if (is_over && thread_.joinable()) thread_.join();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!pollers_.empty() && may_end(*pollers_.front(), lock)) {
      std::unique_ptr<Poller> ending = std::move(pollers_.front());
      pollers_.pop_front();
      lock.unlock();
      ending.reset();
      lock.lock();
    }
    is_running_ = false;
    changed_.notify_all();
  }

  // Waits until the poller may end, and returns true. False: the process exits, so the poller must
  // not end.
  bool may_end(Poller& poller, std::unique_lock<std::mutex>& lock) {
    const auto is_exiting = [this] { return is_exiting_; };
    if (changed_.wait_for(lock, kGrace, is_exiting)) return false;
    for (auto pause = kBetweenVisits;; pause = std::min(2 * pause, kMostBetweenVisits)) {
      lock.unlock();
      const bool may = poller.may_end();
      lock.lock();
      if (may) return !is_exiting_;
      if (changed_.wait_for(lock, pause, is_exiting)) return false;
    }
  }

  std::mutex mutex_;  ///< Guards the members below.
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Poller>> pollers_;
  std::thread thread_;
  bool is_running_ = false;
  bool is_exiting_ = false;
};

std::shared_ptr<GrpcPoller::Poller> GrpcPoller::Poller::share() {
  // These two are never destroyed, because threads of gRPC may use them while the process exits.
  static auto& mutex = *new std::mutex;
  static auto& current = *new std::weak_ptr<Poller>;
  const std::lock_guard lock(mutex);
  auto poller = current.lock();
  if (poller == nullptr) {
    poller = {new Poller, [&ends = Ends::instance()](Poller* unheld) { ends.add(unheld); }};
    current = poller;
  }
  return poller;
}

namespace {

// Receives a call's end from gRPC. run() is never called inline, because a cancelling thread may
// hold the mutex of the call's context.
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

GrpcPoller::Hold::Hold() : poller_(Poller::share()) {}

grpc::CompletionQueue& GrpcPoller::Hold::queue() const {
  return poller_->queue();
}

grpc_completion_queue* GrpcPoller::Hold::callback_queue() const {
  return poller_->callback_queue();
}

void GrpcPoller::Hold::hurry() const {
  poller_->hurry();
}

void GrpcPoller::Hold::keep_callback_threads() const {
  poller_->keep_callback_threads();
}

GrpcPoller::Interest::Interest() {
  poller_->begin_interest();
}

GrpcPoller::Interest::~Interest() {
  poller_->end_interest();
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

void watch_failure(grpc_channel* channel,
                   const std::string& authority,
                   std::function<void(const absl::Status& failure)> ended) {
  const GrpcPoller::Hold hold;
  const grpc_slice path = grpc_slice_from_static_string("/signalbox.Connector/Probe");
  const grpc_slice host = grpc_slice_from_copied_string(authority.c_str());
  grpc_call* const call = grpc_channel_create_call(channel,
                                                   nullptr,
                                                   GRPC_PROPAGATE_DEFAULTS,
                                                   hold.callback_queue(),
                                                   path,
                                                   authority.empty() ? nullptr : &host,
                                                   grpc_deadline(Clock::now() + kLongestFailure),
                                                   nullptr);
  grpc_slice_unref(host);
  watch_end(
      call, /*send=*/true, [hold, call, ended = std::move(ended)](const absl::Status& failure) {
        grpc_call_unref(call);
        ended(failure);
      });
}

}  // namespace signalbox::actors
