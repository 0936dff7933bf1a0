// SPDX-License-Identifier: Apache-2.0
//
// signalbox-interop-client — the client of the ecosystem's PSM interop tests, over signalbox's
// drop-in channel.
//
//   test driver ─▶ --stats_port: stats, configure, CSDS, channelz, health, reflection
//   RpcSender ─▶ Runtime::channel(--server) ─▶ backends
//
// It prints "listening on PORT" when the services are there. SIGINT and SIGTERM end it.
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include "signalbox/runtime.hpp"
#include "tests/interop/psm/behavior_policy.hpp"
#include "tests/interop/psm/flags.hpp"
#include "tests/interop/psm/grpc_testing.grpc.pb.h"
#include "tests/interop/psm/rpc_sender.hpp"
#include "tests/interop/psm/rpc_stats.hpp"

namespace signalbox::psm {
namespace {

class StatsService final : public grpc::testing::LoadBalancerStatsService::Service {
 public:
  explicit StatsService(RpcStats& stats) : stats_(stats) {}

  void stop() { is_stopped_ = true; }

 private:
  grpc::Status GetClientStats(grpc::ServerContext* context,
                              const StatsRequest* request,
                              StatsResponse* response) override {
    *response = stats_.watch(
        *request, [this, context] { return is_stopped_.load() || context->IsCancelled(); });
    return grpc::Status::OK;
  }

  grpc::Status GetClientAccumulatedStats(
      grpc::ServerContext* /*context*/,
      const grpc::testing::LoadBalancerAccumulatedStatsRequest* /*request*/,
      AccumulatedResponse* response) override {
    *response = stats_.accumulated();
    return grpc::Status::OK;
  }

  RpcStats& stats_;
  std::atomic<bool> is_stopped_ = false;
};

class ConfigureService final : public grpc::testing::XdsUpdateClientConfigureService::Service {
 public:
  explicit ConfigureService(RpcSender& sender) : sender_(sender) {}

 private:
  grpc::Status Configure(grpc::ServerContext* /*context*/,
                         const grpc::testing::ClientConfigureRequest* request,
                         grpc::testing::ClientConfigureResponse* /*response*/) override {
    std::vector<RpcConfig> rpcs;
    for (const int type : request->types()) {
      if (!grpc::testing::ClientConfigureRequest::RpcType_IsValid(type)) {
        return {grpc::StatusCode::INVALID_ARGUMENT,
                absl::StrCat("types: must be EMPTY_CALL (0) or UNARY_CALL (1), found ", type)};
      }
      RpcConfig& rpc = rpcs.emplace_back();
      rpc.type = static_cast<RpcType>(type);
      // The metadata of a method that is not called has no effect.
      for (const auto& header : request->metadata()) {
        if (header.type() == type) rpc.metadata.emplace_back(header.key(), header.value());
      }
    }
    sender_.configure(std::move(rpcs), std::chrono::seconds(request->timeout_sec()));
    return grpc::Status::OK;
  }

  RpcSender& sender_;
};

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

int fail(absl::string_view what, const absl::Status& status) {
  std::cerr << "signalbox-interop-client: " << what << status << '\n';
  return 1;
}

int serve(const ClientFlags& flags) {
  const auto board = std::make_shared<BehaviorBoard>();
  RuntimeOptions options;  // The bootstrap: from the environment.
  options.lb_policies.push_back(behavior_policy(board));
  options.call_observer = behavior_observer(board);
  const auto runtime = Runtime::start(std::move(options));
  if (!runtime.ok()) return fail("", runtime.status());

  RpcStats stats(flags.expect_status);
  RpcSender::Channels channels;
  for (int i = 0; i < flags.num_channels; ++i)
    channels.push_back((*runtime)->channel(flags.server));
  std::atomic<bool> has_failed = false;
  RpcSender sender(flags, channels, stats, [&has_failed] {
    if (!has_failed.exchange(true)) ::kill(::getpid(), SIGTERM);
  });

  StatsService stats_service(stats);
  ConfigureService configure_service(sender);
  const std::string address = absl::StrCat(flags.listen_address, ":", flags.stats_port);
  int port = 0;
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&stats_service);
  builder.RegisterService(&configure_service);
  const absl::Status added = (*runtime)->add_admin_services(builder);
  if (!added.ok()) return fail("the admin services: ", added);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0)
    return fail(address + ": ", absl::UnavailableError("cannot listen"));
  std::cout << "listening on " << port << '\n' << std::flush;

  const sigset_t signals = stop_signals();
  int signal = 0;
  sigwait(&signals, &signal);
  stats_service.stop();
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return has_failed ? 1 : 0;
}

}  // namespace
}  // namespace signalbox::psm

int main(int argc, char** argv) {
  using namespace signalbox::psm;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--help"}) {
    std::cout << client_help();
    return 0;
  }
  const auto flags = parse_client_flags(arguments);
  if (!flags.ok()) {
    std::cerr << "signalbox-interop-client: " << flags.status().message() << '\n';
    return 2;
  }
  // All threads that start from now on leave these signals to sigwait().
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return serve(*flags);
}
