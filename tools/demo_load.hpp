// SPDX-License-Identifier: Apache-2.0
//
// The demo's load: calls sent on schedule, whether or not earlier calls have been answered.
//
//   schedule (rps) ─▶ [DemoLoad] ─▶ generated stub ─▶ drop-in channel
//                          └─▶ FinishedCall, one for each call, from gRPC's threads
//
// Open loop: a late answer delays no later call. One thread sends, through the callback API.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include <grpcpp/impl/channel_interface.h>

#include "tools/call_log.hpp"
#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::tools {

class DemoLoad {
 public:
  struct Options {
    double rps = 500;
    std::uint64_t seed = 1;
    std::chrono::milliseconds call_timeout{5000};
  };

  static constexpr const char* kMethod = "/signalbox.demo.v1.Orders/Place";
  /// The size of a request in bytes, for a three-digit item number. Later requests have longer
  /// numbers, and so a few bytes more.
  static std::uint64_t usual_request_bytes();

  /// Several threads may call `on_finished` at a time.
  DemoLoad(const std::shared_ptr<grpc::ChannelInterface>& channel,
           Options options,
           std::function<void(const FinishedCall&)> on_finished);
  ~DemoLoad();
  DemoLoad(const DemoLoad&) = delete;
  DemoLoad& operator=(const DemoLoad&) = delete;

  /// Makes one wait_for_ready call, which is not reported to `on_finished`.
  absl::Status warm_up(std::chrono::milliseconds at_most);

  void start();
  /// Stops sending, and waits for the answers under way. False if some answers did not come in
  /// time.
  bool finish();

 private:
  struct Call;

  void run();
  void send(CallTime due);
  void record_end(const Call& call, const grpc::Status& status);

  const std::unique_ptr<demo::v1::Orders::Stub> stub_;
  const Options options_;
  const std::function<void(const FinishedCall&)> on_finished_;
  std::mt19937_64 dice_;
  std::uint64_t sent_ = 0;
  // The number of calls of the closed loop that are in flight; see load/engine.hpp.
  std::atomic<std::int64_t> closed_in_flight_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::uint64_t under_way_ = 0;
  std::thread thread_;
};

}  // namespace signalbox::tools
