// SPDX-License-Identifier: Apache-2.0
//
// EchoServer — a gRPC backend inside the test's process, on a port of its own.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "echo.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "messages/ids.hpp"

namespace signalbox::test {

class EchoService final : public Echo::Service {
 public:
  grpc::Status Unary(grpc::ServerContext* context,
                     const EchoRequest* request,
                     EchoReply* reply) override {
    ++calls;
    context->AddInitialMetadata("server", "echo");
    context->AddTrailingMetadata("load", "0.5");
    if (request->hold()) hold(*context);
    if (request->status() != 0) {
      return {static_cast<grpc::StatusCode>(request->status()), "as asked"};
    }
    reply->set_text(request->text());
    reply->set_port(port);
    return grpc::Status::OK;
  }

  grpc::Status Chat(grpc::ServerContext*,
                    grpc::ServerReaderWriter<EchoReply, EchoRequest>* stream) override {
    EchoRequest request;
    EchoReply reply;
    while (stream->Read(&request)) {
      reply.set_text(request.text());
      stream->Write(reply);
    }
    return grpc::Status::OK;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  std::atomic<int> calls{0};
  int port = 0;

 private:
  void hold(grpc::ServerContext& context) {
    std::unique_lock lock(mutex_);
    while (!released_ && !context.IsCancelled()) {
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
};

class EchoServer {
 public:
  /// `port` 0: any that is free.
  explicit EchoServer(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &service_.port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }

  ~EchoServer() { stop(); }

  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  void stop() {
    if (server_ == nullptr) return;
    service_.release();
    server_->Shutdown(std::chrono::system_clock::now());
    server_ = nullptr;
  }

  EchoService& service() { return service_; }

  Address address() const { return Address("127.0.0.1:" + std::to_string(service_.port)); }

 private:
  EchoService service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace signalbox::test
