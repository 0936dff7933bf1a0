// SPDX-License-Identifier: Apache-2.0
//
// A raw ADS client: bytes over a real gRPC stream, sent and received as the test says.
//
//   test ─▶ ask(names) ─▶ [RawClient] ─▶ a control plane ─▶ received(client) ─▶ test

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <catch2/catch.hpp>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/process.hpp"
#include "xds/type_url.hpp"

namespace signalbox::test {

using Names = std::set<std::string>;

inline constexpr const char* kAdsMethod =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// One stream. Each function returns when its operation is complete.
class RawClient {
 public:
  explicit RawClient(const std::string& address, const std::string& method = kAdsMethod)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {
    context_.set_wait_for_ready(true);
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(nullptr);
    started_ = next();
  }

  ~RawClient() {
    context_.TryCancel();
    if (!finished_) end();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(const envoy::service::discovery::v3::DiscoveryRequest& request) {
    const grpc::Slice slice(request.SerializeAsString());
    stream_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    REQUIRE(next());
  }

  /// Requests the clusters `names`.
  void ask(const Names& names, const std::string& version = "", const std::string& nonce = "") {
    envoy::service::discovery::v3::DiscoveryRequest request;
    request.set_type_url(std::string(xds::kClusterTypeUrl));
    request.set_version_info(version);
    request.set_response_nonce(nonce);
    for (const auto& name : names)
      request.add_resource_names(name);
    send(request);
  }

  /// The next response; nullopt: the stream ended.
  std::optional<envoy::service::discovery::v3::DiscoveryResponse> receive() {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    if (!next()) return std::nullopt;
    grpc::Slice slice;
    REQUIRE(buffer.DumpToSingleSlice(&slice).ok());
    envoy::service::discovery::v3::DiscoveryResponse response;
    REQUIRE(response.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
    return response;
  }

  grpc::Status end() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    next();
    finished_ = true;
    return status;
  }

  void half_close() {
    stream_->WritesDone(nullptr);
    next();
  }

 private:
  bool next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool started_ = false;
  bool finished_ = false;
};

/// The next response. Fails the test when the stream ends instead.
inline envoy::service::discovery::v3::DiscoveryResponse received(RawClient& client) {
  auto response = client.receive();
  REQUIRE(response.has_value());
  return *response;
}

/// The names of the clusters in the response.
inline Names names_in(const envoy::service::discovery::v3::DiscoveryResponse& response) {
  Names names;
  for (const auto& any : response.resources()) {
    envoy::config::cluster::v3::Cluster message;
    REQUIRE(message.ParseFromString(any.value()));
    names.insert(message.name());
  }
  return names;
}

}  // namespace signalbox::test
