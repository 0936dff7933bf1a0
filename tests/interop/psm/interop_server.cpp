// SPDX-License-Identifier: Apache-2.0
//
// signalbox-interop-server — a backend of the ecosystem's PSM interop tests: plain gRPC, without
// signalbox.
//
//   client ──▶ TestService, which obeys the header rpc-behavior
//   driver ──▶ XdsUpdateHealthService, HookService, health, channelz, reflection, on the same port
//
// It prints "listening on PORT" when it serves, and runs until it is killed.
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <grpcpp/alarm.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "tests/interop/psm/flags.hpp"
#include "tests/interop/psm/grpc_testing.grpc.pb.h"
#include "tests/interop/psm/hook_service.hpp"
#include "tests/interop/psm/rpc_behavior.hpp"

namespace signalbox::psm {
namespace {

using grpc::testing::Empty;

std::vector<std::string> values_of(const grpc::CallbackServerContext& context, const char* key) {
  std::vector<std::string> values;
  const auto [first, last] = context.client_metadata().equal_range(key);
  for (auto header = first; header != last; ++header)
    values.emplace_back(header->second.data(), header->second.size());
  return values;
}

// Answers a call after its delay, or keeps it open until the client gives it up. Deletes itself.
class Answer final : public grpc::ServerUnaryReactor {
 public:
  explicit Answer(Reaction reaction) : reaction_(std::move(reaction)) {}

  void start() {
    if (reaction_.answers_at_once()) return end(reaction_.status);
    if (reaction_.keeps_open) return;
    alarm_.Set(std::chrono::system_clock::now() + reaction_.delay,
               [this](bool is_over) { release(is_over); });
  }

  void OnCancel() override {
    if (reaction_.answers_at_once()) return;  // The answer was given.
    if (reaction_.keeps_open) return end(grpc::Status::CANCELLED);
    alarm_.Cancel();
  }

  void OnDone() override { delete this; }

 private:
  void release(bool is_over) { end(is_over ? reaction_.status : grpc::Status::CANCELLED); }

  void end(const grpc::Status& status) { Finish(status); }

  const Reaction reaction_;
  grpc::Alarm alarm_;
};

class TestServer final : public grpc::testing::TestService::CallbackService {
 public:
  explicit TestServer(const ServerFlags& flags) : flags_(flags) {}

 private:
  grpc::ServerUnaryReactor* EmptyCall(grpc::CallbackServerContext* context,
                                      const Empty* /*request*/,
                                      Empty* /*response*/) override {
    return answer(*context);
  }

  grpc::ServerUnaryReactor* UnaryCall(grpc::CallbackServerContext* context,
                                      const grpc::testing::SimpleRequest* request,
                                      grpc::testing::SimpleResponse* response) override {
    constexpr int kMost = 16 << 20;
    if (request->response_size() < 0 || request->response_size() > kMost) {
      auto* const refused = context->DefaultReactor();
      refused->Finish(
          {grpc::StatusCode::INVALID_ARGUMENT,
           absl::StrCat(
               "response_size: must be 0 to ", kMost, ", found ", request->response_size())});
      return refused;
    }
    response->set_hostname(flags_.host_name);
    response->set_server_id(flags_.server_id);
    if (request->response_size() > 0) {
      response->mutable_payload()->set_body(
          std::string(static_cast<std::size_t>(request->response_size()), '\0'));
    }
    return answer(*context);
  }

  // The header "hostname" names this backend in successful answers only, as in the ecosystem's C++
  // server: a client counts RPCs without it as failures.
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext& context) const {
    const auto attempts = values_of(context, "grpc-previous-rpc-attempts");
    int previous_attempts = 0;
    if (!attempts.empty() && !absl::SimpleAtoi(attempts.front(), &previous_attempts))
      previous_attempts = 0;
    auto reaction =
        reaction_to(values_of(context, "rpc-behavior"), flags_.host_name, previous_attempts);
    if (!reaction.ok()) {
      reaction = Reaction{
          .status = {grpc::StatusCode::INVALID_ARGUMENT, std::string(reaction.status().message())}};
    }
    if (reaction->status.ok()) context.AddInitialMetadata("hostname", flags_.host_name);
    auto* const made = new Answer(*std::move(reaction));
    made->start();
    return made;
  }

  const ServerFlags& flags_;
};

class HealthControl final : public grpc::testing::XdsUpdateHealthService::Service {
 public:
  explicit HealthControl(const ServerFlags& flags) : flags_(flags) {}

  void set_server(grpc::Server& server) {
    health_ = server.GetHealthCheckService();
    set(true);
  }

 private:
  grpc::Status SetServing(grpc::ServerContext* /*context*/,
                          const Empty* /*request*/,
                          Empty* /*response*/) override {
    return set(true);
  }

  grpc::Status SetNotServing(grpc::ServerContext* /*context*/,
                             const Empty* /*request*/,
                             Empty* /*response*/) override {
    return set(false);
  }

  grpc::Status SendHookRequest(grpc::ServerContext* /*context*/,
                               const grpc::testing::HookRequest* request,
                               grpc::testing::HookResponse* /*response*/) override {
    switch (request->command()) {
      case grpc::testing::HookRequest::START:
        return hook_.start(absl::StrCat(flags_.listen_address, ":", request->server_port()));
      case grpc::testing::HookRequest::STOP:
        return hook_.stop();
      case grpc::testing::HookRequest::RETURN:
        return hook_.return_status({static_cast<grpc::StatusCode>(request->grpc_code_to_return()),
                                    request->grpc_status_description()});
      default:
        return {grpc::StatusCode::INVALID_ARGUMENT,
                absl::StrCat("command: must be START, STOP or RETURN, found ",
                             static_cast<int>(request->command()))};
    }
  }

  grpc::Status set(bool is_serving) {
    grpc::HealthCheckServiceInterface* const health = health_.load();
    if (health == nullptr) return {grpc::StatusCode::UNAVAILABLE, "the server is being started"};
    health->SetServingStatus("", is_serving);
    health->SetServingStatus("grpc.testing.TestService", is_serving);
    return grpc::Status::OK;
  }

  const ServerFlags& flags_;
  std::atomic<grpc::HealthCheckServiceInterface*> health_ = nullptr;
  PreStopHook hook_;
};

int serve(const ServerFlags& flags) {
  TestServer test(flags);
  HealthControl health(flags);
  HookService hook;
  const std::string address = absl::StrCat(flags.listen_address, ":", flags.port);
  int port = 0;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::channelz::experimental::InitChannelzService();
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&test);
  builder.RegisterService(&health);
  builder.RegisterService(&hook);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::cerr << "signalbox-interop-server: " << address << ": cannot listen" << '\n';
    return 1;
  }
  health.set_server(*server);
  std::cout << "listening on " << port << '\n' << std::flush;
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace signalbox::psm

int main(int argc, char** argv) {
  using namespace signalbox::psm;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--help"}) {
    std::cout << server_help();
    return 0;
  }
  const auto flags = parse_server_flags(arguments);
  if (!flags.ok()) {
    std::cerr << "signalbox-interop-server: " << flags.status().message() << '\n';
    return 2;
  }
  return serve(*flags);
}
