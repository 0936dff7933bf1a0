// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/psm/rpc_sender.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>

namespace signalbox::psm {
namespace {

using grpc::testing::ClientConfigureRequest;
using Clock = std::chrono::steady_clock;

// "rpc-behavior: keep-open" asks for RPCs that stay, so such RPCs have no deadline.
bool keeps_open(const RpcConfig& config) {
  return std::any_of(config.metadata.begin(), config.metadata.end(), [](const auto& header) {
    return header.first == "rpc-behavior" && header.second == "keep-open";
  });
}

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

void add(const Metadata& from, StatsResponse::MetadataType type, StatsResponse::RpcMetadata& to) {
  for (const auto& [key, value] : from) {
    StatsResponse::MetadataEntry& entry = *to.add_metadata();
    entry.set_key(key.data(), key.size());
    entry.set_value(value.data(), value.size());
    entry.set_type(type);
  }
}

}  // namespace

// Deletes itself when it has ended.
struct RpcSender::Rpc {
  RpcType type = ClientConfigureRequest::UNARY_CALL;
  RpcId id = 0;
  grpc::ClientContext context;
  grpc::testing::Empty nothing, empty_reply;
  grpc::testing::SimpleRequest request;
  grpc::testing::SimpleResponse reply;

  std::string peer() const {
    const auto& headers = context.GetServerInitialMetadata();
    const auto name = headers.find("hostname");
    return name == headers.end() ? reply.hostname()
                                 : std::string(name->second.data(), name->second.size());
  }
};

RpcSender::RpcSender(const ClientFlags& flags,
                     const Channels& channels,
                     RpcStats& stats,
                     std::function<void()> on_late_failure)
    : flags_(flags),
      stats_(stats),
      on_late_failure_(std::move(on_late_failure)),
      rpcs_(flags.rpcs),
      timeout_(flags.rpc_timeout) {
  for (const auto& channel : channels)
    stubs_.push_back(grpc::testing::TestService::NewStub(channel));
  thread_ = std::thread([this] { run(); });
}

RpcSender::~RpcSender() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  thread_.join();
  std::unique_lock lock(mutex_);
  for (Rpc* const rpc : in_flight_)
    rpc->context.TryCancel();
  changed_.wait(lock, [this] { return in_flight_.empty(); });
}

void RpcSender::configure(std::vector<RpcConfig> rpcs, std::chrono::seconds timeout) {
  const std::lock_guard lock(mutex_);
  rpcs_ = std::move(rpcs);
  timeout_ = timeout.count() > 0 ? timeout : flags_.rpc_timeout;
}

void RpcSender::run() {
  const auto interval = std::chrono::nanoseconds(std::chrono::seconds(1)) / flags_.qps;
  Clock::time_point next = Clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_until(lock, next, [this] { return is_over_; })) return;
    }
    send_round();
    // A process that was stopped for a while does not make up for the RPCs of that time.
    next = std::max(next + interval, Clock::now() - std::chrono::seconds(1));
  }
}

void RpcSender::send_round() {
  std::vector<RpcConfig> rpcs;
  {
    const std::lock_guard lock(mutex_);
    rpcs = rpcs_;
  }
  for (const auto& stub : stubs_) {
    for (const RpcConfig& config : rpcs)
      send(*stub, config);
  }
}

void RpcSender::send(Stub& stub, const RpcConfig& config) {
  auto* const rpc = new Rpc;
  rpc->type = config.type;
  for (const auto& [key, value] : config.metadata)
    rpc->context.AddMetadata(key, value);
  {
    const std::lock_guard lock(mutex_);
    if (!keeps_open(config)) rpc->context.set_deadline(std::chrono::system_clock::now() + timeout_);
    in_flight_.insert(rpc);
  }
  rpc->id = stats_.began(rpc->type);
  const auto done = [this, rpc](const grpc::Status& status) { ended(*rpc, status); };
  if (rpc->type == ClientConfigureRequest::EMPTY_CALL) {
    stub.async()->EmptyCall(&rpc->context, &rpc->nothing, &rpc->empty_reply, done);
    return;
  }
  rpc->request.set_response_size(flags_.response_payload_size);
  if (flags_.request_payload_size > 0) {
    rpc->request.mutable_payload()->set_body(
        std::string(static_cast<std::size_t>(flags_.request_payload_size), '\0'));
  }
  stub.async()->UnaryCall(&rpc->context, &rpc->request, &rpc->reply, done);
}

void RpcSender::ended(Rpc& rpc, const grpc::Status& status) {
  RpcOutcome outcome{
      .type = rpc.type, .code = status.error_code(), .peer = rpc.peer(), .metadata = {}};
  add(rpc.context.GetServerInitialMetadata(), StatsResponse::INITIAL, outcome.metadata);
  add(rpc.context.GetServerTrailingMetadata(), StatsResponse::TRAILING, outcome.metadata);
  const bool is_late_failure = stats_.ended(rpc.id, outcome);
  // Each line is one write, because RPCs end on several threads.
  if (flags_.print_response && status.ok()) {
    // Test drivers look for this text.
    std::cout << absl::StrCat("Greeting: Hello world, this is ",
                              outcome.peer,
                              ", from ",
                              rpc.context.peer(),
                              "\n")
              << std::flush;
  } else if (flags_.print_response || (is_late_failure && flags_.fail_on_failed_rpc)) {
    std::cout << absl::StrCat(
                     "RPC failed: ", status.error_code(), ": ", status.error_message(), "\n")
              << std::flush;
  }
  if (is_late_failure && flags_.fail_on_failed_rpc) on_late_failure_();
  const std::lock_guard lock(mutex_);
  in_flight_.erase(&rpc);
  delete &rpc;
  changed_.notify_all();
}

}  // namespace signalbox::psm
