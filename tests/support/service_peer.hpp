// SPDX-License-Identifier: Apache-2.0
//
// ServicePeer — a gRPC server with one service on a free port, and a channel to it.
//
//   client calls by path ─▶ channel() ─▶ the server ─▶ the service
//
// The messages of the admin services have packages of signalbox, so calls are made without stubs.

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>

namespace signalbox::test {

class ServicePeer {
 public:
  explicit ServicePeer(grpc::Service& service) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
  }

  ~ServicePeer() { server_->Shutdown(std::chrono::system_clock::now()); }

  ServicePeer(const ServicePeer&) = delete;
  ServicePeer& operator=(const ServicePeer&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  template <typename Request, typename Response>
  grpc::Status call(const char* path, const Request& request, Response& response) const {
    using grpc::internal::RpcMethod;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return grpc::internal::BlockingUnaryCall(channel_.get(),
                                             RpcMethod(path, RpcMethod::NORMAL_RPC, channel_),
                                             &context,
                                             request,
                                             &response);
  }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace signalbox::test
