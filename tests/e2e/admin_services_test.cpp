// SPDX-License-Identifier: Apache-2.0
//
// Runtime::add_admin_services beside services of gRPC's own: the errors, and a server with both.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <catch2/catch.hpp>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

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

void check_that_it_serves(Runtime& runtime, AdminServices services) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const absl::Status added = runtime.add_admin_services(builder, services);
  INFO(added.ToString());
  REQUIRE(added.ok());
  const auto server = builder.BuildAndStart();
  REQUIRE(server != nullptr);
  CHECK(port > 0);
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace

TEST_CASE("admin services: a second health service is an error that says so", "[e2e][admin]") {
  const auto runtime = some_runtime();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  const absl::Status refused = runtime->add_admin_services(builder);
  check_that_it_serves(*runtime, {.health = false});
  grpc::EnableDefaultHealthCheckService(false);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("AdminServices::health = false"));
  check_that_it_serves(*runtime, {});
}

TEST_CASE("admin services: a second channelz is an error that says so", "[e2e][admin]") {
  const auto runtime = some_runtime();
  check_that_it_serves(*runtime, {});
  grpc::channelz::experimental::InitChannelzService();  // Cannot be undone in this process.
  grpc::ServerBuilder builder;
  const absl::Status refused = runtime->add_admin_services(builder);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("AdminServices::channelz = false"));
  check_that_it_serves(*runtime, {.channelz = false});
}

}  // namespace signalbox
