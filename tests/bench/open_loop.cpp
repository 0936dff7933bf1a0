// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/open_loop.hpp"

#include <memory>
#include <random>

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_unary_call.h>

#include "tests/bench/process_usage.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCallTime = std::chrono::seconds(5);

// Reading a thread's CPU clock is a system call, so only a sample of the waits is measured.
constexpr int kWaitsPerSample = 32;

}  // namespace

struct OpenLoop::Call {
  Clock::time_point due;
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<demo::v1::PlaceReply>> reader;
};

OpenLoop::OpenLoop(Stub& stub, Options options, OnFinished on_finished)
    : stub_(stub),
      options_(options),
      on_finished_(std::move(on_finished)),
      taker_([this] { take_answers(); }),
      sender_([this] { send_all(); }) {}

OpenLoop::~OpenLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  sender_.join();
  queue_.Shutdown();
  taker_.join();
}

void OpenLoop::send_all() {
  const auto start = Clock::now();
  std::mt19937_64 dice;  // Not seeded, so both sides of a comparison get calls at the same moments.
  std::uniform_real_distribution<double> moment(0, 1);
  for (std::uint64_t i = 0;; ++i) {
    const std::chrono::duration<double> offset((static_cast<double>(i) + moment(dice)) /
                                               options_.rate);
    const auto due = start + std::chrono::duration_cast<Clock::duration>(offset);
    if (!wait_until(due)) return;
    send(due, i % options_.work_every == 0 ? options_.work : std::chrono::microseconds(0));
  }
}

bool OpenLoop::wait_until(Clock::time_point due) {
  const auto wait = [&] {
    std::unique_lock lock(mutex_);
    return stopped_.wait_until(lock, due, [this] { return stopping_; });
  };  // The lambda also unlocks the mutex: that may be a system call, and counts as waiting.
  if (waits_++ % kWaitsPerSample != 0) return !wait();
  const double earlier = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  const double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  const bool is_over = wait();
  const double after = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  const double reading = before - earlier;
  waiting_cpu_seconds_ = waiting_cpu_seconds_ + kWaitsPerSample * (after - before - reading);
  return !is_over;
}

void OpenLoop::send(Clock::time_point due, std::chrono::microseconds work) {
  auto* const call = new Call;  // take_answers() deletes it.
  call->due = due;
  call->context.set_deadline(std::chrono::system_clock::now() + kCallTime);
  demo::v1::PlaceRequest request;
  request.set_item("item");
  request.set_work_us(static_cast<std::uint32_t>(work.count()));
  call->reader = stub_.AsyncPlace(&call->context, request, &queue_);
  call->reader->Finish(&call->reply, &call->status, call);
}

void OpenLoop::take_answers() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    on_finished_({.due = call->due,
                  .ended = Clock::now(),
                  .ok = call->status.ok(),
                  .code = call->status.error_code(),
                  .cluster = call->reply.cluster(),
                  .pid = call->reply.pid(),
                  .error = call->status.error_message()});
  }
}

}  // namespace signalbox::bench
