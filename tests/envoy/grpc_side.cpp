// SPDX-License-Identifier: Apache-2.0
#include "tests/envoy/grpc_side.hpp"

#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace signalbox::test {
namespace {

std::string value_of(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata,
                     const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

}  // namespace

GrpcBackend::GrpcBackend() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) throw std::runtime_error("no port is free on 127.0.0.1");
  service_.address = absl::StrCat("127.0.0.1:", port);
}

GrpcBackend::~GrpcBackend() {
  server_->Shutdown(std::chrono::system_clock::now());
}

grpc::Status GrpcBackend::Service::Place(grpc::ServerContext* /*context*/,
                                         const demo::v1::PlaceRequest* /*request*/,
                                         demo::v1::PlaceReply* reply) {
  reply->set_backend(address);
  return grpc::Status::OK;
}

std::shared_ptr<grpc::ChannelInterface> plain_channel(const std::string& address) {
  return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
}

Answer call_once(grpc::ChannelInterface& channel,
                 const std::string& cookie,
                 std::chrono::seconds at_most) {
  demo::v1::Orders::Stub stub(std::shared_ptr<grpc::ChannelInterface>(&channel, [](auto*) {}));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + at_most);
  if (!cookie.empty()) context.AddMetadata("cookie", cookie);
  demo::v1::PlaceReply reply;
  const grpc::Status status = stub.Place(&context, {}, &reply);
  std::string set_cookie = value_of(context.GetServerInitialMetadata(), "set-cookie");
  if (set_cookie.empty()) set_cookie = value_of(context.GetServerTrailingMetadata(), "set-cookie");
  return {status.ok() ? reply.backend() : "",
          std::move(set_cookie),
          status.ok() ? "" : absl::StrCat(status.error_code(), ": ", status.error_message())};
}

}  // namespace signalbox::test
