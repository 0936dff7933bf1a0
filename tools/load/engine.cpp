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

constexpr auto kTakerLook = std::chrono::milliseconds(100);

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

}  // namespace

struct LoadEngine::Call : BegunCall {
  std::atomic<bool> is_busy = false;
  std::optional<grpc::ClientContext> context;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

LoadEngine::LoadEngine(const std::shared_ptr<grpc::ChannelInterface>& channel, Options options)
    : OpenLoop(std::move(options)), stub_(channel), request_(buffer_of(this->options().payload)) {}

LoadEngine::~LoadEngine() {
  stop();
  cancel();
  if (sender_.joinable()) sender_.join();
  if (taker_.joinable()) taker_.join();
}

void LoadEngine::launch() {
  taker_ = std::thread([this] { take_all(); });
  sender_ = std::thread([this] { send_all(); });
}

std::chrono::nanoseconds LoadEngine::own_cpu() const {
  return nanoseconds(sender_cpu_ns_ + taker_cpu_ns_);
}

// --- the sender ----------------------------------------------------------------------------------

void LoadEngine::send_all() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // The default slack of 50 µs would count as lateness.
  for (std::uint64_t number = 0;; ++number) {
    std::optional<Clock::time_point> due;
    {
      const SampledCpu cpu(number, sender_cpu_ns_);
      due = next_due();
      if (!due || !wait_until(*due)) break;
    }
    send(*due, number);
  }
  note_all_sent();
}

// False: the engine is stopping.
bool LoadEngine::wait_until(Clock::time_point due) const {
  for (;;) {
    if (is_stopping()) return false;
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
  const auto begun = begin(due, number);
  if (!begun) return;
  Call* call = free_.pop().value_or(nullptr);
  if (call == nullptr) call = calls_.emplace_back(std::make_unique<Call>()).get();
  static_cast<BegunCall&>(*call) = *begun;
  call->context.emplace();
  call->context->set_deadline(std::chrono::system_clock::now() + options().call_timeout);
  for (const auto& [name, value] : options().headers)
    call->context->AddMetadata(name, value);
  if (call->session >= 0) jar(call->session).send(*call->context, options().method);
  call->is_busy = true;
  call->reader = stub_.PrepareUnaryCall(&*call->context, options().method, request_, &queue_);
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
    if (!has_sent_all()) continue;
    if (is_cancelling() && !is_cancelled) {
      is_cancelled = true;
      cancel_busy();
    }
    if (is_idle() && !is_shut) {
      is_shut = true;
      queue_.Shutdown();
    }
  }
}

void LoadEngine::take(Call& call) {
  EndedCall ended = ended_call(call, call.status.error_code());
  const std::string peer = call.context->peer();
  if (call.session >= 0) {
    // A cookie that the jar refuses is not kept; the session then moves, which is counted.
    jar(call.session).receive(*call.context).IgnoreError();
  }
  {
    const SampledCpu cpu(static_cast<std::uint64_t>(ended.ended_ns), taker_cpu_ns_);
    ended.endpoint = endpoint_of(peer);
    if (!call.status.ok())
      add_message(absl::StrCat(
          "code ", static_cast<int>(call.status.error_code()), ": ", call.status.error_message()));
    record(ended);
  }
  call.reader.reset();
  call.reply.Clear();
  call.status = grpc::Status();
  call.context.reset();
  call.is_busy = false;
  static_cast<void>(free_.push(&call));  // A call object that does not fit is not used again.
  leave(ended.is_closed_loop);
}

// The sender has ended, so only this thread changes calls.
void LoadEngine::cancel_busy() {
  for (const auto& call : calls_) {
    if (call->is_busy) call->context->TryCancel();
  }
}

}  // namespace signalbox::tools
