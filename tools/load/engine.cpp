// SPDX-License-Identifier: Apache-2.0
#include "tools/load/engine.hpp"

#include <algorithm>
#include <ctime>
#include <optional>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/async_stream.h>
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

std::vector<grpc::ByteBuffer> buffers_of(const std::vector<std::string>& requests,
                                         const std::string& only_request) {
  if (requests.empty()) return {buffer_of(only_request)};
  std::vector<grpc::ByteBuffer> buffers;
  buffers.reserve(requests.size());
  for (const std::string& request : requests)
    buffers.push_back(buffer_of(request));
  return buffers;
}

}  // namespace

struct LoadEngine::Call : BegunCall {
  std::atomic<bool> is_busy = false;
  std::optional<grpc::ClientContext> context;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;

  // A server-streaming call has one operation at a time: the start, each read, the end.
  std::unique_ptr<grpc::ClientAsyncReader<grpc::ByteBuffer>> stream;
  bool is_started = false;
  bool is_finishing = false;
  std::uint32_t stream_messages = 0;
  Clock::time_point first_message;
};

LoadEngine::LoadEngine(const std::shared_ptr<grpc::ChannelInterface>& channel,
                       CallPlan plan,
                       const std::vector<std::string>& requests)
    : OpenLoop(std::move(plan)),
      channel_(channel),
      stub_(channel),
      requests_(buffers_of(requests, this->plan().request.bytes)) {}

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
  call->context->set_deadline(std::chrono::system_clock::now() + plan().call_timeout);
  for (const auto& [name, value] : plan().headers)
    call->context->AddMetadata(name, value);
  if (call->session >= 0) jar(call->session).send(*call->context, plan().method);
  call->is_busy = true;
  const grpc::ByteBuffer& request = requests_[number % requests_.size()];
  if (plan().request.is_streaming) {
    // The generic stub has no server-streaming calls. This is what a generated stub does.
    call->stream.reset(grpc::internal::ClientAsyncReaderFactory<grpc::ByteBuffer>::Create(
        channel_.get(),
        &queue_,
        grpc::internal::RpcMethod(plan().method.c_str(),
                                  grpc::internal::RpcMethod::SERVER_STREAMING),
        &*call->context,
        request,
        /*start=*/false,
        /*tag=*/nullptr));
    call->stream->StartCall(call);
    return;
  }
  call->reader = stub_.PrepareUnaryCall(&*call->context, plan().method, request, &queue_);
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
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      Call& call = *static_cast<Call*>(tag);
      if (advance(call, ok)) take(call);
    }
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

// Starts the next operation of a server-streaming call. True: the call has its status, as a unary
// call always has.
bool LoadEngine::advance(Call& call, bool ok) const {
  if (!plan().request.is_streaming || call.is_finishing) return true;
  if (!ok) {
    call.is_finishing = true;
    call.stream->Finish(&call.status, &call);
    return false;
  }
  if (call.is_started && call.stream_messages++ == 0) call.first_message = Clock::now();
  call.is_started = true;
  call.stream->Read(&call.reply, &call);
  return false;
}

void LoadEngine::take(Call& call) {
  EndedCall ended = ended_call(call, call.status.error_code());
  ended.stream_messages = call.stream_messages;
  ended.first_message_ns = since_start(call.first_message);
  const std::string peer = call.context->peer();
  if (call.session >= 0) {
    // A cookie that the jar refuses is not kept. If the session then moves, the move is counted.
    jar(call.session).receive(*call.context).IgnoreError();
  }
  {
    const SampledCpu cpu(static_cast<std::uint64_t>(ended.ended_ns), taker_cpu_ns_);
    ended.endpoint = endpoint_of(peer);
    if (!call.status.ok())
      ended.message = message_of(absl::StrCat("code ", ended.code), call.status.error_message());
    record(ended);
  }
  call.reader.reset();
  call.stream.reset();
  call.is_started = false;
  call.is_finishing = false;
  call.stream_messages = 0;
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
