// SPDX-License-Identifier: Apache-2.0
//
// Sends RPCs at a steady rate, and reports their ends to RpcStats.
//
//   configure ─▶ [RpcSender]: a thread ── each 1/qps: an RPC per channel and method ─▶ channels
//                     └── began, ended ─▶ RpcStats
//
// Thread-safe.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/impl/channel_interface.h>

#include "tests/interop/psm/flags.hpp"
#include "tests/interop/psm/grpc_testing.grpc.pb.h"
#include "tests/interop/psm/rpc_stats.hpp"

namespace signalbox::psm {

class RpcSender {
 public:
  using Channels = std::vector<std::shared_ptr<grpc::ChannelInterface>>;

  /// Starts to send. `stats` must outlive the sender. `on_late_failure` is called when an RPC fails
  /// after another one has succeeded.
  RpcSender(const ClientFlags& flags,
            const Channels& channels,
            RpcStats& stats,
            std::function<void()> on_late_failure);
  /// Cancels the RPCs in flight, and waits for their ends.
  ~RpcSender();
  RpcSender(const RpcSender&) = delete;
  RpcSender& operator=(const RpcSender&) = delete;

  /// The RPCs from now on. `timeout`: their deadline; 0 means the flag's.
  void configure(std::vector<RpcConfig> rpcs, std::chrono::seconds timeout);

 private:
  struct Rpc;
  using Stub = grpc::testing::TestService::Stub;

  void run();
  void send_round();
  void send(Stub& stub, const RpcConfig& config);
  void ended(Rpc& rpc, const grpc::Status& status);

  const ClientFlags flags_;
  RpcStats& stats_;
  const std::function<void()> on_late_failure_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RpcConfig> rpcs_;
  std::chrono::seconds timeout_;
  bool is_over_ = false;
  std::set<Rpc*> in_flight_;
  std::thread thread_;
};

}  // namespace signalbox::psm
