// SPDX-License-Identifier: Apache-2.0
//
// LoadEngine — sends the calls of an OpenLoop by gRPC.
//
//   OpenLoop ─▶ [sender thread] ─▶ generic stub ─▶ channel ─▶ [taker thread] ─▶ OpenLoop
//
// When a call ends OK at an endpoint that the engine knows, the engine takes no lock of its own to
// record the call: it is one value in a ring. A call of a session has its jar's lock.
//
// A server-streaming call ends with its stream, and is one call, however many messages it has.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/channel_interface.h>
#include <grpcpp/support/byte_buffer.h>

#include "tools/load/open_loop.hpp"
#include "tools/load/ring.hpp"

namespace signalbox::tools {

class LoadEngine final : public OpenLoop {
 public:
  /// `requests`: the calls take turns with these requests. Empty: every call has the request
  /// `plan.request.bytes`.
  LoadEngine(const std::shared_ptr<grpc::ChannelInterface>& channel,
             CallPlan plan,
             const std::vector<std::string>& requests = {});
  /// Cancels the calls in flight.
  ~LoadEngine() override;

  /// CPU time of the engine's own work in the sender and the taker, so far; sampled.
  std::chrono::nanoseconds own_cpu() const override;

 private:
  struct Call;

  void launch() override;
  void send_all();
  bool wait_until(Clock::time_point due) const;
  void send(Clock::time_point due, std::uint64_t number);
  void take_all();
  bool advance(Call& call, bool ok) const;
  void take(Call& call);
  void cancel_busy();

  const std::shared_ptr<grpc::ChannelInterface> channel_;
  grpc::GenericStub stub_;
  const std::vector<grpc::ByteBuffer> requests_;
  grpc::CompletionQueue queue_;

  Ring<Call*, kPlaces> free_;
  // Only the sender thread uses calls_, and cancel_busy() after the sender's end.
  std::vector<std::unique_ptr<Call>> calls_;

  std::atomic<std::int64_t> sender_cpu_ns_ = 0;
  std::atomic<std::int64_t> taker_cpu_ns_ = 0;

  std::thread sender_;
  std::thread taker_;
};

}  // namespace signalbox::tools
