// SPDX-License-Identifier: Apache-2.0
//
// The gRPC admin services of a runtime that serves calls: health follows the runtime's readiness,
// and CSDS shows no secret.
//
//   client ─▶ Health, CSDS ─▶ Runtime ─┬▶ ControlPlane
//                                      └▶ BackendProcess, which is killed and comes back
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/support/sync_stream.h>
#include <signal.h>

#include "channel/services/proto/health.pb.h"
#include "signalbox/envoy/service/status/v3/csds.pb.h"
#include "tests/e2e/runtime_world.hpp"
#include "xds/redaction.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;
using envoy::service::status::v3::ClientStatusRequest;
using envoy::service::status::v3::ClientStatusResponse;
using grpc::internal::RpcMethod;
using health::HealthCheckRequest;
using health::HealthCheckResponse;

constexpr char kTarget[] = "xds:///orders";

// A server with the admin services of a runtime, and a channel to the server. The tests call the
// services by their official names, without generated stubs: stubs of signalbox's protobuf packages
// would call services with signalbox's prefix in the name.
class AdminPeer {
 public:
  explicit AdminPeer(Runtime& runtime) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    // No channelz here: another test switches gRPC's own channelz on, for the life of the process.
    const absl::Status added = runtime.add_admin_services(builder, {.channelz = false});
    INFO(added.ToString());
    REQUIRE(added.ok());
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
  }

  ~AdminPeer() { server_->Shutdown(std::chrono::system_clock::now()); }

  AdminPeer(const AdminPeer&) = delete;
  AdminPeer& operator=(const AdminPeer&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  HealthCheckResponse::ServingStatus check(const std::string& service) const {
    HealthCheckRequest request;
    request.set_service(service);
    return unary<HealthCheckResponse>("/grpc.health.v1.Health/Check", request).status();
  }

  /// The services of List, each with whether it is SERVING.
  std::map<std::string, bool> list() const {
    std::map<std::string, bool> all;
    const auto listed = unary<health::HealthListResponse>("/grpc.health.v1.Health/List",
                                                          health::HealthListRequest());
    for (const auto& [service, response] : listed.statuses())
      all[service] = response.status() == HealthCheckResponse::SERVING;
    return all;
  }

  ClientStatusResponse fetch_client_status() const {
    return unary<ClientStatusResponse>(
        "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus",
        ClientStatusRequest());
  }

 private:
  template <typename Response, typename Request>
  Response unary(const char* path, const Request& request) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    Response response;
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall(channel_.get(),
                                          RpcMethod(path, RpcMethod::NORMAL_RPC, channel_),
                                          &context,
                                          request,
                                          &response);
    INFO(status.error_message());
    REQUIRE(status.ok());
    return response;
  }

  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// A Watch call of the health service. A thread reads the statuses that the server sends.
class HealthWatch {
 public:
  HealthWatch(const AdminPeer& peer, const std::string& service)
      : channel_(peer.channel()),
        method_("/grpc.health.v1.Health/Watch", RpcMethod::SERVER_STREAMING, channel_) {
    HealthCheckRequest request;
    request.set_service(service);
    reader_.reset(grpc::internal::ClientReaderFactory<HealthCheckResponse>::Create(
        channel_.get(), method_, &context_, request));
    thread_ = std::thread([this] {
      for (HealthCheckResponse response; reader_->Read(&response);) {
        const std::lock_guard lock(mutex_);
        told_.push_back(response.status());
        changed_.notify_all();
      }
      reader_->Finish();
    });
  }

  ~HealthWatch() {
    context_.TryCancel();
    thread_.join();
  }

  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  /// Waits for `count` statuses, for at most kPatience. Returns all statuses received so far.
  std::vector<int> first(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return told_.size() >= count; });
    return told_;
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const RpcMethod method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> told_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("admin services: health follows the readiness, by Check, List and Watch",
          "[e2e][runtime][admin][status][A90]") {
  BackendProcess first("first");
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  const AdminPeer peer(*runtime);
  const auto channel = runtime->channel(kTarget);
  const std::vector<std::string> services{"", kTarget};
  const auto wait_for = [&](HealthCheckResponse::ServingStatus wanted) {
    for (const std::string& service : services) {
      INFO("service '" << service << "', status " << wanted);
      CHECK(eventually([&] { return peer.check(service) == wanted; }));
    }
    const bool is_ready = wanted == HealthCheckResponse::SERVING;
    CHECK(runtime->ready() == is_ready);
    CHECK(peer.list() == std::map<std::string, bool>{{"", is_ready}, {kTarget, is_ready}});
  };
  HealthWatch all(peer, "");
  HealthWatch one(peer, kTarget);
  std::vector<int> wanted{HealthCheckResponse::NOT_SERVING};
  const auto watches_tell = [&](HealthCheckResponse::ServingStatus next) {
    if (wanted.back() != next) wanted.push_back(next);
    CHECK(all.first(wanted.size()) == wanted);
    CHECK(one.first(wanted.size()) == wanted);
  };

  // No configuration yet.
  wait_for(HealthCheckResponse::NOT_SERVING);
  watches_tell(HealthCheckResponse::NOT_SERVING);

  plane->update(resources(simple_yaml("orders", "c", {first.address})));
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  wait_for(HealthCheckResponse::SERVING);
  watches_tell(HealthCheckResponse::SERVING);

  first.process.send_signal(SIGKILL);
  wait_for(HealthCheckResponse::NOT_SERVING);
  watches_tell(HealthCheckResponse::NOT_SERVING);

  const BackendProcess second("second");
  plane->update(resources(endpoints_yaml("c", {{second.address}})));
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  wait_for(HealthCheckResponse::SERVING);
  watches_tell(HealthCheckResponse::SERVING);
}

TEST_CASE("admin services: no secret of a resource goes through CSDS or the dump",
          "[e2e][runtime][admin][dump][A40]") {
  const std::string secret = "hush";
  const BackendProcess backend("good");
  const std::string yaml = simple_yaml("orders", "c", {backend.address});
  const std::string with_header = replaced(
      yaml,
      "routes: [",
      "routes: [{match: {prefix: \"\", headers: [{name: authorization, string_match: {exact: "
      "\"Bearer " +
          secret + "\"}}]}, route: {cluster: c}}, ");
  const auto plane = start_plane(replaced(
      with_header,
      "type: EDS",
      "type: EDS, metadata: {filter_metadata: {example: {api_key: " + secret + ", zone: north}}}"));
  const auto runtime = start_runtime(options_for(plane->address()));
  const AdminPeer peer(*runtime);
  const auto channel = runtime->channel(kTarget);
  REQUIRE(call(channel).ok());

  const ClientStatusResponse fetched = peer.fetch_client_status();
  REQUIRE(fetched.config_size() == 1);
  const auto& shown = fetched.config(0).generic_xds_configs();
  REQUIRE(shown.size() == 4);
  for (const auto& resource : shown)
    CHECK_FALSE(resource.xds_config().value().empty());
  // Two of the runtime's resources contain the secret, so only redaction keeps it out of the dump.
  const auto dump = runtime->dump();
  REQUIRE(dump.ok());
  std::size_t secrets = 0;
  for (const ResourceState& state : dump->resources)
    secrets += state.bytes != nullptr && state.bytes->find(secret) != std::string::npos ? 1 : 0;
  CHECK(secrets == 2);

  const std::string bytes = fetched.SerializeAsString();
  const std::string json = *runtime->dump_json();
  for (const std::string& text : {bytes, json}) {
    CHECK_THAT(text, !Contains(secret));
    CHECK_THAT(text, Contains(std::string(xds::kRedacted)));
    // The dump still shows texts that are not secret.
    CHECK_THAT(text, Contains("authorization") && Contains("north"));
  }
}

}  // namespace signalbox::test
