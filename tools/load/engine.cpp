// SPDX-License-Identifier: Apache-2.0
#include "tools/load/engine.hpp"

#include <algorithm>
#include <ctime>
#include <optional>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>
#include <grpcpp/support/slice.h>
#include <sys/prctl.h>

namespace signalbox::tools {
namespace {

using std::chrono::nanoseconds;

constexpr auto kLook = std::chrono::milliseconds(50);  // How often a wait looks for stop().
constexpr auto kTakerLook = std::chrono::milliseconds(100);

// Reading a thread's CPU clock is a system call, so only one call in kSampleEvery is measured.
constexpr std::uint64_t kSampleEvery = 32;

nanoseconds thread_cpu() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

RateProfile whole_profile(const LoadEngine::Options& options) {
  return with_warmup(options.profile, std::chrono::duration<double>(options.warmup).count());
}

}  // namespace

struct LoadEngine::Call {
  Clock::time_point due;
  Clock::time_point sent;
  std::int32_t session = EndedCall::kNoSession;
  bool is_closed_loop = false;
  std::atomic<bool> is_busy = false;
  std::optional<grpc::ClientContext> context;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

// Adds the CPU time of a part of a thread's work to a sum, by samples.
class LoadEngine::OwnCpu {
 public:
  OwnCpu(std::uint64_t number, std::atomic<std::int64_t>& sum)
      : is_sampled_(number % kSampleEvery == 0), sum_(sum) {
    if (is_sampled_) before_ = thread_cpu();
  }

  ~OwnCpu() {
    if (is_sampled_)
      sum_ += static_cast<std::int64_t>(kSampleEvery) * (thread_cpu() - before_).count();
  }

  OwnCpu(const OwnCpu&) = delete;
  OwnCpu& operator=(const OwnCpu&) = delete;

 private:
  bool is_sampled_;
  std::atomic<std::int64_t>& sum_;
  nanoseconds before_{};
};

LoadEngine::LoadEngine(const std::shared_ptr<grpc::ChannelInterface>& channel, Options options)
    : options_(std::move(options)),
      stub_(channel),
      request_(buffer_of(options_.payload)),
      schedule_(whole_profile(options_), options_.arrivals, options_.seed) {
  for (std::size_t i = 0; i < options_.sessions; ++i)
    jars_.push_back(std::make_unique<CookieJar>());
}

LoadEngine::~LoadEngine() {
  stop();
  cancel();
  if (sender_.joinable()) sender_.join();
  if (taker_.joinable()) taker_.join();
}

void LoadEngine::start(Clock::time_point begin) {
  begin_ = begin + options_.warmup;
  taker_ = std::thread([this] { take_all(); });
  sender_ = std::thread([this] { send_all(); });
}

void LoadEngine::stop() {
  stopping_ = true;
}

void LoadEngine::cancel() {
  cancelling_ = true;
}

bool LoadEngine::is_done() const {
  return has_sent_all_ && in_flight_ == 0;
}

LoadEngine::Drained LoadEngine::drain() {
  Drained drained;
  while (const auto call = sent_.pop())
    drained.sent.push_back(*call);
  while (const auto call = ended_.pop())
    drained.ended.push_back(*call);
  // The endpoints are taken after the calls, so that the list has every endpoint of those calls.
  const std::lock_guard lock(mutex_);
  drained.endpoints = std::exchange(new_endpoints_, {});
  return drained;
}

std::chrono::nanoseconds LoadEngine::own_cpu() const {
  return nanoseconds(sender_cpu_ns_ + taker_cpu_ns_);
}

std::int64_t LoadEngine::since_start(Clock::time_point time) const {
  return nanoseconds(time - begin_).count();
}

// --- the sender ----------------------------------------------------------------------------------

void LoadEngine::send_all() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // The default slack of 50 µs would count as lateness.
  const nanoseconds end = options_.warmup + options_.duration;
  for (std::uint64_t number = 0; !stopping_; ++number) {
    Clock::time_point due;
    {
      const OwnCpu cpu(number, sender_cpu_ns_);
      const nanoseconds offset = schedule_.next();
      if (offset >= end) break;
      due = begin_ - options_.warmup + offset;
      if (!wait_until(due)) break;
    }
    send(due, number);
  }
  has_sent_all_ = true;
}

// False: the engine is stopping.
bool LoadEngine::wait_until(Clock::time_point due) const {
  for (;;) {
    if (stopping_) return false;
    const auto now = Clock::now();
    if (now >= due) return true;
    const auto until = std::min(due, now + kLook).time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until);
    const timespec time{.tv_sec = seconds.count(),
                        .tv_nsec = static_cast<long>(nanoseconds(until - seconds).count())};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
  }
}

void LoadEngine::send(Clock::time_point due, std::uint64_t number) {
  const auto now = Clock::now();
  const bool is_dropped = in_flight_ >= options_.max_in_flight || now - due > options_.call_timeout;
  const SentCall sent{
      .due_ns = since_start(due), .sent_ns = since_start(now), .is_dropped = is_dropped};
  while (!sent_.push(sent) && !cancelling_)
    std::this_thread::yield();
  if (is_dropped) return;
  Call* call = free_.pop().value_or(nullptr);
  if (call == nullptr) call = calls_.emplace_back(std::make_unique<Call>()).get();
  call->due = due;
  call->sent = now;
  call->context.emplace();
  call->context->set_deadline(std::chrono::system_clock::now() + options_.call_timeout);
  for (const auto& [name, value] : options_.headers)
    call->context->AddMetadata(name, value);
  if (!jars_.empty()) {
    call->session = static_cast<std::int32_t>(number % jars_.size());
    jars_[number % jars_.size()]->send(*call->context, options_.method);
  }
  call->is_closed_loop = closed_in_flight_ < kClosedLoopCallers;
  if (call->is_closed_loop) ++closed_in_flight_;
  ++in_flight_;
  call->is_busy = true;
  call->reader = stub_.PrepareUnaryCall(&*call->context, options_.method, request_, &queue_);
  call->reader->StartCall();
  call->reader->Finish(&call->reply, &call->status, call);
}

// --- the taker -----------------------------------------------------------------------------------

void LoadEngine::take_all() {
  bool is_shut = false;
  bool is_cancelled = false;
  for (;;) {
    void* tag = nullptr;
    bool ok = false;
    const auto deadline = std::chrono::system_clock::now() + kTakerLook;
    const auto next = queue_.AsyncNext(&tag, &ok, deadline);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) take(*static_cast<Call*>(tag));
    if (!has_sent_all_) continue;
    if (cancelling_ && !is_cancelled) {
      is_cancelled = true;
      cancel_busy();
    }
    if (in_flight_ == 0 && !is_shut) {
      is_shut = true;
      queue_.Shutdown();
    }
  }
}

void LoadEngine::take(Call& call) {
  const auto now = Clock::now();
  EndedCall ended{.due_ns = since_start(call.due),
                  .sent_ns = since_start(call.sent),
                  .ended_ns = since_start(now),
                  .session = call.session,
                  .code = static_cast<std::uint8_t>(call.status.error_code()),
                  .is_closed_loop = call.is_closed_loop};
  const std::string peer = call.context->peer();
  if (call.session >= 0) {
    // A cookie that the jar refuses is not kept; the session then moves, which is counted.
    jars_[static_cast<std::size_t>(call.session)]->receive(*call.context).IgnoreError();
  }
  {
    const OwnCpu cpu(static_cast<std::uint64_t>(ended.ended_ns), taker_cpu_ns_);
    ended.endpoint = endpoint_of(peer);
    if (!call.status.ok())
      messages_.add(absl::StrCat(
          "code ", static_cast<int>(call.status.error_code()), ": ", call.status.error_message()));
    while (!ended_.push(ended) && !cancelling_)
      std::this_thread::yield();
  }
  call.reader.reset();
  call.reply.Clear();
  call.status = grpc::Status();
  call.context.reset();
  call.is_busy = false;
  if (ended.is_closed_loop) --closed_in_flight_;
  static_cast<void>(free_.push(&call));  // A call object that does not fit is not used again.
  --in_flight_;
}

// The sender has ended, so only this thread changes calls.
void LoadEngine::cancel_busy() {
  for (const auto& call : calls_) {
    if (call->is_busy) call->context->TryCancel();
  }
}

std::uint32_t LoadEngine::endpoint_of(const std::string& peer) {
  EndpointNumbers::Found found = endpoints_.find(peer);
  if (found.new_address) {
    const std::lock_guard lock(mutex_);
    new_endpoints_.push_back(*std::move(found.new_address));
  }
  return found.number;
}

}  // namespace signalbox::tools
