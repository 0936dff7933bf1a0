// SPDX-License-Identifier: Apache-2.0
//
// Backends that restart gracefully (GOAWAY) under unary and streaming load, with each maker of
// connections: the client loses no call by a mistake of its own.
//
// gRPC's C++ server is not wholly graceful. From the moment that Server::Shutdown() is called until
// clients have its GOAWAY, it cancels each call that arrives, before a handler begins it. A
// connection that it accepts meanwhile becomes READY, and is closed at once. Calls that end so may
// not be made again, because the client cannot know that no handler began them. These are excused.
// The servers' count tells them from calls that were broken: each call that a handler began must
// have succeeded. Servers of grpc-go finish all calls: tests/interop/graceful_restarts_test.cpp.
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/echo_load.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

// A backend. In a restart, the next process listens on the same port before the old one leaves, as
// with socket activation.
class Restarting {
 public:
  Restarting() { instance_ = std::make_unique<Instance>(0); }

  std::string address() const { return absl::StrCat("127.0.0.1:", instance_->service.port); }

  /// The calls that handlers of the newest instance have begun.
  int calls() const { return instance_->service.calls; }

  /// The same, of all instances.
  int all_calls() const { return earlier_calls_ + calls(); }

  /// Returns when the calls of the old instance have ended.
  void restart() {
    auto successor = std::make_unique<Instance>(instance_->service.port);
    std::swap(successor, instance_);
    successor->server->Shutdown();  // Sends GOAWAY, and waits.
    earlier_calls_ += successor->service.calls;
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
  int earlier_calls_ = 0;
};

bool is_excused(const EchoEnd& failed) {
  if (failed.replies > 0) return false;  // A handler has begun it.
  const std::string text = failed.status.error_message();
  switch (failed.status.error_code()) {
    case grpc::StatusCode::CANCELLED:
      return true;
    case grpc::StatusCode::UNAVAILABLE:
      return is_caught_by_goaway(failed) || absl::StrContains(text, "Socket closed") ||
             absl::StrContains(text, "Connection reset by peer") ||
             absl::StrContains(text, "Broken pipe");
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("runtime: graceful restarts of backends lose no call", "[runtime][restarts][A6]") {
  constexpr int kRestarts = 50;  // For each maker.
  const bool sockets = GENERATE(false, true);
  CAPTURE(sockets);
  std::array<Restarting, 3> backends;
  const auto plane = start_plane(simple_yaml(
      "orders", "c", {backends[0].address(), backends[1].address(), backends[2].address()}));
  std::atomic<int> without_sockets{0};
  const auto runtime = start_runtime(options_with(sockets, plane->address(), without_sockets));
  const auto channel = runtime->channel("xds:///orders");
  EchoLoad load(channel, is_excused);
  for (Restarting& backend : backends)
    REQUIRE(eventually([&] { return backend.calls() > 0; }));
  for (int i = 0; i < kRestarts; ++i) {
    Restarting& backend = backends[static_cast<std::size_t>(i) % backends.size()];
    backend.restart();
    REQUIRE(eventually([&] { return backend.calls() > 0; }));
  }
  load.stop();
  int begun = 0;
  for (const Restarting& backend : backends)
    begun += backend.all_calls();
  WARN(kRestarts << " restarts" << (sockets ? " with sockets" : "") << ": " << load.unaries()
                 << " unary calls, " << load.streams() << " streams, " << load.excused()
                 << " excused, " << load.lost().size() << " lost");
  CHECK(load.lost() == std::vector<std::string>());
  CHECK(begun == load.served());
  // Four callers share three backends, so a restart meets one or two of them, perhaps one twice.
  CHECK(load.excused() < 3 * kRestarts);
  CHECK(without_sockets == 0);
}

}  // namespace signalbox::test
