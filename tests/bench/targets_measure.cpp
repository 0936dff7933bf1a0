// SPDX-License-Identifier: Apache-2.0
//
// Measures the time until a call to each of many targets, opened at once, has been answered. The
// side has opened one of these targets before, without a call.
//
//   options.targets × (channel, call) ─▶ one completion queue ─▶ the last answer
#include <chrono>
#include <deque>
#include <memory>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include "tests/bench/measures.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(60);

struct WaitingCall {
  std::unique_ptr<Stub> stub;
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<demo::v1::PlaceReply>> reader;
};

}  // namespace

Measured measure_many_targets(const MeasureOptions& options, Side& side) {
  grpc::CompletionQueue queue;
  std::deque<WaitingCall> calls;
  const auto begun = Clock::now();
  for (int number = 0; number < options.targets; ++number) {
    WaitingCall& call = calls.emplace_back();
    call.stub = demo::v1::Orders::NewStub(open_channel(side, absl::StrCat("xds:///bench", number)));
    call.context.set_deadline(std::chrono::system_clock::now() + kPatience);
    call.reader = call.stub->AsyncPlace(&call.context, {}, &queue);
    call.reader->Finish(&call.reply, &call.status, &call);
  }
  int failed = 0;
  std::string error;
  for (int number = 0; number < options.targets; ++number) {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    const auto& status = static_cast<WaitingCall*>(tag)->status;
    if (status.ok()) continue;
    ++failed;
    error = status.error_message();
  }
  const double answered_ms =
      std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
  if (failed > 0)
    return absl::UnavailableError(absl::StrCat(failed, " calls failed, the last with: ", error));
  return nlohmann::json{{"answered_ms", answered_ms}};
}

}  // namespace signalbox::bench
