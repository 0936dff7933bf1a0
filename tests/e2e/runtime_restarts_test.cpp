// SPDX-License-Identifier: Apache-2.0
//
// Backends that restart gracefully (GOAWAY) under unary and streaming load, with each maker of
// connections: the client loses no call.
//
// gRPC's C++ server cancels the calls that it has received but not begun when Server::Shutdown() is
// called, before it sends GOAWAY. Such a call ends with the server's CANCELLED, and may not be made
// again. The test counts these calls by themselves.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;

// A backend. In a restart, the next process listens on the same port before the old one leaves, as
// with socket activation.
class Restarting {
 public:
  Restarting() { instance_ = std::make_unique<Instance>(0); }

  std::string address() const { return absl::StrCat("127.0.0.1:", instance_->service.port); }

  /// The calls of the newest instance.
  int calls() const { return instance_->service.calls; }

  /// Returns when the calls of the old instance have ended.
  void restart() {
    auto successor = std::make_unique<Instance>(instance_->service.port);
    std::swap(successor, instance_);
    successor->server->Shutdown();  // Sends GOAWAY, and waits.
  }

 private:
  struct Instance {
    explicit Instance(int port) {
      grpc::ServerBuilder builder;
      builder.AddListeningPort(
          absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(), &service.port);
      builder.RegisterService(&service);
      server = builder.BuildAndStart();
      REQUIRE(server != nullptr);
    }

    EchoService service;
    std::unique_ptr<grpc::Server> server;
  };

  std::unique_ptr<Instance> instance_;
};

grpc::Status unary(Echo::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  EchoReply reply;
  return stub.Unary(&context, EchoRequest(), &reply);
}

grpc::Status stream(Echo::Stub& stub) {
  constexpr int kMessages = 4;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto chat = stub.Chat(&context);
  EchoRequest request;
  EchoReply reply;
  for (int i = 0; i < kMessages && chat->Write(request) && chat->Read(&reply); ++i) {
  }
  chat->WritesDone();
  return chat->Finish();
}

// Two threads with unary calls and two with streams, until the destructor or stop().
class Load {
 public:
  explicit Load(const std::shared_ptr<grpc::ChannelInterface>& channel) {
    for (const bool streams : {false, false, true, true}) {
      threads_.emplace_back([this, channel, streams] {
        Echo::Stub stub(channel);
        while (!is_ending_) {
          const grpc::Status status = streams ? test::stream(stub) : unary(stub);
          ++(streams ? streams_ : unaries_);
          if (status.error_code() == grpc::StatusCode::CANCELLED) {
            ++cancelled_;
          } else if (!status.ok()) {
            note(streams, status);
          }
        }
      });
    }
  }

  ~Load() { stop(); }

  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void stop() {
    is_ending_ = true;
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  int unaries() const { return unaries_; }

  int streams() const { return streams_; }

  /// Calls that a server has cancelled.
  int cancelled() const { return cancelled_; }

  std::vector<std::string> lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  void note(bool streams, const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(absl::StrCat(
        streams ? "stream: " : "call: ", status.error_code(), " ", status.error_message()));
  }

  std::atomic<bool> is_ending_{false};
  std::atomic<int> unaries_{0};
  std::atomic<int> streams_{0};
  std::atomic<int> cancelled_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> lost_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("runtime: graceful restarts of backends lose no call", "[runtime][restarts][A6]") {
  constexpr int kRestarts = 50;  // For each maker.
  const bool sockets = GENERATE(false, true);
  CAPTURE(sockets);
  std::array<Restarting, 3> backends;
  const auto plane = start_plane(simple_yaml(
      "orders", "c", {backends[0].address(), backends[1].address(), backends[2].address()}));
  std::atomic<int> without_sockets{0};
  RuntimeOptions options = options_for(plane->address());
  options.socket_connections = sockets;
  options.channel_arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.log = [&without_sockets](const std::string& text) {
    if (absl::StrContains(text, "socket_connections has no effect")) ++without_sockets;
  };
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  Load load(channel);
  for (Restarting& backend : backends)
    REQUIRE(eventually([&] { return backend.calls() > 0; }));
  for (int i = 0; i < kRestarts; ++i) {
    Restarting& backend = backends[static_cast<std::size_t>(i) % backends.size()];
    backend.restart();
    REQUIRE(eventually([&] { return backend.calls() > 0; }));
  }
  load.stop();
  WARN(kRestarts << " restarts" << (sockets ? " with sockets" : "") << ": " << load.unaries()
                 << " unary calls, " << load.streams() << " streams, " << load.cancelled()
                 << " cancelled by a server, " << load.lost().size() << " lost");
  CHECK(load.lost() == std::vector<std::string>());
  // A restart cancels a few of its calls at most.
  CHECK(load.cancelled() < (load.unaries() + load.streams()) / 20);
  CHECK(without_sockets == 0);
}

}  // namespace signalbox::test
