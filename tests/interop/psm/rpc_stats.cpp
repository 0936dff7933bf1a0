// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/psm/rpc_stats.hpp"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace signalbox::psm {
namespace {

using grpc::testing::ClientConfigureRequest;

std::string enum_name(RpcType type) {
  return std::string(ClientConfigureRequest::RpcType_Name(type));
}

}  // namespace

const char* method_name(RpcType type) {
  return type == ClientConfigureRequest::EMPTY_CALL ? "EmptyCall" : "UnaryCall";
}

StatsWatcher::StatsWatcher(RpcId first, const StatsRequest& request)
    : first_(first),
      end_(first + std::max(request.num_rpcs(), 0)),
      missing_(std::max(request.num_rpcs(), 0)) {
  for (const std::string& key : request.metadata_keys())
    keys_.insert(absl::AsciiStrToLower(key));
}

void StatsWatcher::ended(RpcId id, const RpcOutcome& outcome) {
  if (id < first_ || id >= end_) return;
  --missing_;
  if (outcome.peer.empty()) {
    counted_.set_num_failures(counted_.num_failures() + 1);
    return;
  }
  ++(*counted_.mutable_rpcs_by_peer())[outcome.peer];
  auto& by_method = (*counted_.mutable_rpcs_by_method())[method_name(outcome.type)];
  ++(*by_method.mutable_rpcs_by_peer())[outcome.peer];
  auto& kept = *(*counted_.mutable_metadatas_by_peer())[outcome.peer].add_rpc_metadata();
  for (const auto& entry : outcome.metadata.metadata()) {
    if (!wants(entry.key())) continue;
    *kept.add_metadata() = entry;
    has_metadata_ = true;
  }
}

bool StatsWatcher::wants(const std::string& key) const {
  return keys_.contains("*") || keys_.contains(absl::AsciiStrToLower(key));
}

StatsResponse StatsWatcher::response() const {
  StatsResponse response = counted_;
  response.set_num_failures(counted_.num_failures() + missing_);
  // As in gRPC's client: an RPC without the keys has an empty entry if another RPC has one of them.
  if (!has_metadata_) response.clear_metadatas_by_peer();
  return response;
}

// The maps of numbers by method are deprecated in favour of stats_per_method. Test drivers still
// read them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void AccumulatedStats::began(RpcType type) {
  const std::string name = enum_name(type);
  ++(*counted_.mutable_num_rpcs_started_by_method())[name];
  auto& stats = (*counted_.mutable_stats_per_method())[name];
  stats.set_rpcs_started(stats.rpcs_started() + 1);
}

void AccumulatedStats::ended(const RpcOutcome& outcome, bool is_success) {
  const std::string name = enum_name(outcome.type);
  auto& numbers = is_success ? *counted_.mutable_num_rpcs_succeeded_by_method()
                             : *counted_.mutable_num_rpcs_failed_by_method();
  ++numbers[name];
  ++(*(*counted_.mutable_stats_per_method())[name].mutable_result())[outcome.code];
}

#pragma GCC diagnostic pop

RpcId RpcStats::began(RpcType type) {
  const std::lock_guard lock(mutex_);
  all_.began(type);
  return next_++;
}

bool RpcStats::ended(RpcId id, const RpcOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  const bool is_success = outcome.code == expected_;
  all_.ended(outcome, is_success);
  bool is_complete = false;
  for (StatsWatcher* const watcher : watchers_) {
    watcher->ended(id, outcome);
    is_complete = is_complete || watcher->is_complete();
  }
  if (is_complete) changed_.notify_all();
  has_succeeded_ = has_succeeded_ || is_success;
  return has_succeeded_ && !is_success;
}

StatsResponse RpcStats::watch(const StatsRequest& request,
                              const std::function<bool()>& is_given_up) {
  constexpr auto kSlice = std::chrono::milliseconds(200);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(request.timeout_sec());
  std::unique_lock lock(mutex_);
  StatsWatcher watcher(next_, request);
  watchers_.insert(&watcher);
  while (!watcher.is_complete() && std::chrono::steady_clock::now() < end) {
    changed_.wait_until(lock, std::min(end, std::chrono::steady_clock::now() + kSlice));
    if (is_given_up()) break;
  }
  watchers_.erase(&watcher);
  return watcher.response();
}

AccumulatedResponse RpcStats::accumulated() const {
  const std::lock_guard lock(mutex_);
  return all_.response();
}

}  // namespace signalbox::psm
