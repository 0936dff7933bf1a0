// SPDX-License-Identifier: Apache-2.0
//
// CallbackService — a gRPC service with methods that are named in C++, and not in a .proto file.
//
//   CsdsService, ChannelzService, HealthService ─▶ [CallbackService] ─▶ grpc::ServerBuilder
//
// The services have the names of envoy.service.status.v3, grpc.channelz.v1 and grpc.health.v1. The
// messages have other packages, because a program may link the generated code of those packages,
// and protobuf ends a process that has two messages of one name. Therefore the generated services
// cannot be used.

#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/support/server_callback.h>

#include "channel/services/worker.hpp"

namespace signalbox::channel {

inline grpc::Status to_grpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

inline grpc::Status too_busy() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          "the admin services have too many requests or streams; try again later"};
}

class CallbackService : public grpc::Service {
 protected:
  template <typename Request, typename Response>
  using Answer = std::function<absl::Status(const Request&, Response&)>;

  /// Adds a unary method. `path`: "/SERVICE/METHOD", a string literal, because gRPC keeps the
  /// pointer. `answer` is called on the thread of `worker`.
  template <typename Request, typename Response>
  void add_unary(const char* path, Worker& worker, Answer<Request, Response> answer) {
    add_unary<Request, Response>(
        path,
        [&worker, answer = std::move(answer)](
            grpc::CallbackServerContext* context, const Request* request, Response* response) {
          grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
          const bool is_posted = worker.post([&answer, reactor, request, response] {
            reactor->Finish(to_grpc(answer(*request, *response)));
          });
          if (!is_posted) reactor->Finish(too_busy());
          return reactor;
        });
  }

  /// Adds a unary method. gRPC calls `start` on its own thread, so `start` must not block.
  template <typename Request, typename Response, typename Start>
  void add_unary(const char* path, Start start) {
    add(path,
        grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Request, Response>(std::move(start)));
  }

  template <typename Request, typename Response, typename Start>
  void add_server_stream(const char* path, Start start) {
    add(path,
        grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Request, Response>(std::move(start)));
  }

  template <typename Request, typename Response, typename Start>
  void add_stream(const char* path, Start start) {
    add(path,
        grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::CallbackBidiHandler<Request, Response>(std::move(start)));
  }

 private:
  void add(const char* path,
           grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    AddMethod(new grpc::internal::RpcServiceMethod(path, type, nullptr));
    MarkMethodCallback(count_++, handler);
  }

  int count_ = 0;
};

}  // namespace signalbox::channel
