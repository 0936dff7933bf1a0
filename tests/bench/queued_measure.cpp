// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of calls that wait for their first connection.
//
//   client: calls, which wait ─ ready ─▶ driver: the endpoints are set ─▶ all answered ─ the same
//           again, with a connection that is there
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include "tests/bench/measures.hpp"
#include "tests/bench/process_usage.hpp"

namespace signalbox::bench {
namespace {

constexpr auto kQueuedCallTime = std::chrono::seconds(60);

struct Call {
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<demo::v1::PlaceReply>> reader;
};

/// Calls that are sent one after another, without waiting for answers.
class Batch {
 public:
  Batch(Stub& stub, int calls) : calls_(static_cast<std::size_t>(calls)) {
    demo::v1::PlaceRequest request;
    request.set_item("item");
    for (Call& call : calls_) {
      call.context.set_wait_for_ready(true);
      call.context.set_deadline(std::chrono::system_clock::now() + kQueuedCallTime);
      call.reader = stub.AsyncPlace(&call.context, request, &queue_);
      call.reader->Finish(&call.reply, &call.status, &call);
    }
  }

  ~Batch() {
    for (; left_ > 0 && begun_; --left_)
      next();
  }

  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Waits until all calls are answered or one has failed.
  absl::Status finish() {
    begun_ = true;
    for (left_ = calls_.size(); left_ > 0;) {
      const grpc::Status status = next();
      --left_;
      if (!status.ok())
        return absl::UnavailableError(absl::StrCat("a call failed: ", status.error_message()));
    }
    return absl::OkStatus();
  }

 private:
  grpc::Status next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return static_cast<Call*>(tag)->status;
  }

  grpc::CompletionQueue queue_;
  std::vector<Call> calls_;
  std::size_t left_ = 0;
  bool begun_ = false;
};

}  // namespace

Measured measure_queued(const MeasureOptions& options, Side& side) {
  const auto per_call = [&options](double seconds) { return seconds * 1e6 / options.calls; };
  const double before = cpu_seconds();
  {
    Batch waiting(*side.stub, options.calls);
    std::cout << R"({"ready":true})" << std::endl;
    if (auto status = waiting.finish(); !status.ok()) return status;
  }
  const auto answered = std::chrono::steady_clock::now();
  const double queued = cpu_seconds();
  if (auto status = Batch(*side.stub, options.calls).finish(); !status.ok()) return status;
  return nlohmann::json{{"queued_us", per_call(queued - before)},
                        {"ready_us", per_call(cpu_seconds() - queued)},
                        {"answered_ns", answered.time_since_epoch().count()}};
}

}  // namespace signalbox::bench
