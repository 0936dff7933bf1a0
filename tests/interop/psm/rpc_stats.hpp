// SPDX-License-Identifier: Apache-2.0
//
// The statistics of the client's RPCs, as LoadBalancerStatsService reports them.
//
//   rpc_sender ── began, ended ─▶ [RpcStats] ─▶ GetClientStats: a StatsWatcher each
//                                      └──────▶ GetClientAccumulatedStats: AccumulatedStats
//
// RPCs are numbered in the order in which they are sent. GetClientStats is about the RPCs that are
// sent after the request: it waits until so many of them have ended, or until its time is over.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <grpcpp/support/status.h>

#include "tests/interop/psm/flags.hpp"
#include "tests/interop/psm/grpc_testing.pb.h"

namespace signalbox::psm {

using StatsRequest = grpc::testing::LoadBalancerStatsRequest;
using StatsResponse = grpc::testing::LoadBalancerStatsResponse;
using AccumulatedResponse = grpc::testing::LoadBalancerAccumulatedStatsResponse;
using RpcId = std::int64_t;

/// How an RPC ended.
struct RpcOutcome {
  RpcType type = grpc::testing::ClientConfigureRequest::UNARY_CALL;
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string peer;                     ///< The backend's name; empty: not known.
  StatsResponse::RpcMetadata metadata;  ///< All headers and trailers of the response.
};

/// The name of the RPC's method in rpcs_by_method: "EmptyCall" or "UnaryCall".
const char* method_name(RpcType type);

/// Counts the RPCs of one GetClientStats. Not thread-safe.
class StatsWatcher {
 public:
  /// `first`: the id of the first RPC that counts.
  StatsWatcher(RpcId first, const StatsRequest& request);

  void ended(RpcId id, const RpcOutcome& outcome);

  bool is_complete() const { return missing_ == 0; }

  /// RPCs that have not ended are failures.
  StatsResponse response() const;

 private:
  bool wants(const std::string& key) const;

  const RpcId first_;
  const RpcId end_;
  std::set<std::string> keys_;  ///< In lower case.
  std::int32_t missing_;
  StatsResponse counted_;
  bool has_metadata_ = false;  ///< Whether an RPC had one of the keys.
};

/// Counts all RPCs. Not thread-safe.
class AccumulatedStats {
 public:
  void began(RpcType type);
  /// `is_success`: whether the status is the one that the test expects.
  void ended(const RpcOutcome& outcome, bool is_success);

  const AccumulatedResponse& response() const { return counted_; }

 private:
  AccumulatedResponse counted_;
};

/// Thread-safe.
class RpcStats {
 public:
  explicit RpcStats(grpc::StatusCode expected = grpc::StatusCode::OK) : expected_(expected) {}

  RpcId began(RpcType type);
  /// Returns whether the RPC is the first failure after a success, or a later one.
  bool ended(RpcId id, const RpcOutcome& outcome);

  /// Blocks until the RPCs have ended, request.timeout_sec() has passed, or `is_given_up` returns
  /// true. The latter is asked several times a second.
  StatsResponse watch(const StatsRequest& request, const std::function<bool()>& is_given_up);

  AccumulatedResponse accumulated() const;

 private:
  const grpc::StatusCode expected_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RpcId next_ = 1;
  bool has_succeeded_ = false;
  AccumulatedStats all_;
  std::set<StatsWatcher*> watchers_;
};

}  // namespace signalbox::psm
