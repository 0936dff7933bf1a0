// SPDX-License-Identifier: Apache-2.0
//
// Runtime::add_admin_services beside services of gRPC's own: the errors, and a server with both.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/create_channel.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "channel/services/proto/health.pb.h"
#include "signalbox/runtime.hpp"

namespace signalbox {
namespace {

using Catch::Matchers::Contains;

std::unique_ptr<Runtime> some_runtime() {
  RuntimeOptions options;
  options.bootstrap_json =
      R"({"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]})";
  options.log = [](const std::string&) {};
  auto runtime = Runtime::start(std::move(options));
  INFO(runtime.status().ToString());
  REQUIRE(runtime.ok());
  return *std::move(runtime);
}

// Whether the channel's server has the method. Every message can be read as one without fields, so
// one type serves as the request and the response of all methods.
bool has_method(const std::shared_ptr<grpc::Channel>& channel, const char* path) {
  using grpc::internal::RpcMethod;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const health::HealthListRequest request;
  health::HealthListRequest response;
  const grpc::Status status = grpc::internal::BlockingUnaryCall(
      channel.get(), RpcMethod(path, RpcMethod::NORMAL_RPC, channel), &context, request, &response);
  INFO(path << ": " << status.error_message());
  CHECK((status.ok() || status.error_code() == grpc::StatusCode::UNIMPLEMENTED));
  return status.ok();
}

// Serves `services`, and returns those of the three services that answer.
std::vector<std::string> served(Runtime& runtime, AdminServices services) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const absl::Status added = runtime.add_admin_services(builder, services);
  INFO(added.ToString());
  REQUIRE(added.ok());
  const auto server = builder.BuildAndStart();
  REQUIRE(server != nullptr);
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  std::vector<std::string> found;
  if (has_method(channel,
                 "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"))
    found.emplace_back("csds");
  if (has_method(channel, "/grpc.channelz.v1.Channelz/GetServers")) found.emplace_back("channelz");
  if (has_method(channel, "/grpc.health.v1.Health/Check")) found.emplace_back("health");
  server->Shutdown(std::chrono::system_clock::now());
  return found;
}

using Names = std::vector<std::string>;

}  // namespace

// This test is the first, because the last test of this file switches gRPC's own channelz on, for
// the life of the process.
TEST_CASE("admin services: a service that its flag leaves out is not there", "[e2e][admin]") {
  const auto runtime = some_runtime();
  CHECK(served(*runtime, {}) == Names{"csds", "channelz", "health"});
  CHECK(served(*runtime, {.csds = false}) == Names{"channelz", "health"});
  CHECK(served(*runtime, {.channelz = false}) == Names{"csds", "health"});
  CHECK(served(*runtime, {.health = false}) == Names{"csds", "channelz"});
}

TEST_CASE("admin services: a second health service is an error that says so", "[e2e][admin]") {
  const auto runtime = some_runtime();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  const absl::Status refused = runtime->add_admin_services(builder);
  // gRPC's own health service answers Check here, because signalbox's is left out.
  CHECK(served(*runtime, {.health = false}) == Names{"csds", "channelz", "health"});
  grpc::EnableDefaultHealthCheckService(false);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("AdminServices::health = false"));
  CHECK(served(*runtime, {}) == Names{"csds", "channelz", "health"});
}

TEST_CASE("admin services: a second channelz is an error that says so", "[e2e][admin]") {
  const auto runtime = some_runtime();
  CHECK(served(*runtime, {}) == Names{"csds", "channelz", "health"});
  grpc::channelz::experimental::InitChannelzService();  // Cannot be undone in this process.
  grpc::ServerBuilder builder;
  const absl::Status refused = runtime->add_admin_services(builder);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("AdminServices::channelz = false"));
  // gRPC's own channelz answers GetServers here, because signalbox's is left out.
  CHECK(served(*runtime, {.channelz = false}) == Names{"csds", "channelz", "health"});
}

}  // namespace signalbox
