// SPDX-License-Identifier: Apache-2.0
//
// The gRPC half of the comparison with Envoy: backends that answer with their address, and calls.
//
//   call_once ─▶ a plain channel ─▶ Envoy ─┐
//             ─▶ a signalbox channel ──────┴▶ [GrpcBackend] ─▶ Answer: its address, the set-cookie

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::test {

/// A server on a free port of loopback, for as long as it lives.
class GrpcBackend {
 public:
  GrpcBackend();
  ~GrpcBackend();
  GrpcBackend(const GrpcBackend&) = delete;
  GrpcBackend& operator=(const GrpcBackend&) = delete;

  const std::string& address() const { return service_.address; }

 private:
  struct Service final : demo::v1::Orders::Service {
    grpc::Status Place(grpc::ServerContext* context,
                       const demo::v1::PlaceRequest* request,
                       demo::v1::PlaceReply* reply) override;

    std::string address;
  };

  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

struct Answer {
  std::string backend;     ///< Its address; empty: the call failed.
  std::string set_cookie;  ///< Of the answer's headers or trailers.
  std::string error;
};

/// gRPC's own channel, to one address.
std::shared_ptr<grpc::ChannelInterface> plain_channel(const std::string& address);

/// `cookie`: the value of the header; empty: the call has none.
Answer call_once(grpc::ChannelInterface& channel,
                 const std::string& cookie,
                 std::chrono::seconds at_most);

}  // namespace signalbox::test
