// SPDX-License-Identifier: Apache-2.0
//
// gRPC shuts down after the last runtime of a process, as it does without signalbox. Control plane
// and backends are other processes, so only the runtime or the test can keep gRPC alive here.
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <grpc/grpc.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

bool grpc_is_down() {
  return eventually([] { return grpc_is_initialized() == 0; });
}

// `signalbox serve` as a process: a control plane of these resources.
class PlaneProcess {
 public:
  explicit PlaneProcess(const std::string& yaml)
      : process_(start_program({SIGNALBOX_PROGRAM,
                                "serve",
                                "--resources",
                                folder_.write("resources.yaml", "resources:\n" + yaml),
                                "--listen",
                                "127.0.0.1:0"})) {
    const auto line = process_.read_line(kPatience);
    INFO(line.status().ToString() << " " << process_.captured_errors());
    REQUIRE(line.ok());
    address_ = nlohmann::json::parse(*line)["address"];
  }

  const std::string& address() const { return address_; }

 private:
  const TemporaryFolder folder_;
  tools::ChildProcess process_;
  std::string address_;
};

// Runtimes with their resources in a file.
class FileWorld {
 public:
  explicit FileWorld(const std::string& yaml) {
    folder_.write("resources.yaml", "resources:\n" + yaml);
    folder_.write("bootstrap.json", R"({"signalbox.resources": "resources.yaml"})");
  }

  std::unique_ptr<Runtime> start() const {
    RuntimeOptions options = options_for("");
    options.bootstrap_json = std::nullopt;
    options.bootstrap_path = folder_.path("bootstrap.json");
    return start_runtime(std::move(options));
  }

 private:
  const TemporaryFolder folder_;
};

void check_sync(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  const Answer answer = call(channel, {.wait_for_ready = true});
  INFO(answer.text());
  CHECK(answer.ok());
}

void check_async(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  Stub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  grpc::Status status;
  const auto reader = stub.AsyncPlace(&context, {}, &queue);
  reader->Finish(&reply, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  CHECK(queue.Next(&tag, &ok));
  CHECK(status.ok());
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
}

void check_callback(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  Calls calls(channel);
  calls.start(5, {.wait_for_ready = true});
  for (const Answer& answer : calls.finish()) {
    INFO(answer.text());
    CHECK(answer.ok());
  }
}

void check_all(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  check_sync(channel);
  check_async(channel);
  check_callback(channel);
}

}  // namespace

TEST_CASE("grpc_shutdown: after calls of all three APIs", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const FileWorld world(simple_yaml("orders", "c", {backend.address}));
  const bool is_runtime_first = GENERATE(true, false);
  INFO("the runtime ends before its channel: " << is_runtime_first);
  auto runtime = world.start();
  auto channel = runtime->channel("xds:///orders");
  check_all(channel);
  if (is_runtime_first) {
    runtime = nullptr;
    CHECK_FALSE(call(channel).ok());
    CHECK(grpc_is_initialized() == 1);  // The channel holds gRPC.
    channel = nullptr;
  } else {
    channel = nullptr;
    runtime = nullptr;
  }
  CHECK(grpc_is_down());
}

TEST_CASE("grpc_shutdown: after a stream to a control plane", "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const PlaneProcess plane(simple_yaml("orders", "c", {backend.address}));
  {
    const auto runtime = start_runtime(options_for(plane.address()));
    check_all(runtime->channel("xds:///orders"));
  }
  CHECK(grpc_is_down());
}

TEST_CASE("grpc_shutdown: after a runtime that never had a configuration",
          "[e2e][runtime][shutdown]") {
  const RefusingAddress refusing;
  const BlackHole silent;
  MuteSocket mute;
  mute.listen();
  const std::string servers[] = {refusing.address(), silent.address(), mute.address().str()};
  const std::string server = servers[GENERATE(0, 1, 2)];
  const bool is_called = GENERATE(true, false);
  INFO(server << ", with calls: " << is_called);
  {
    auto runtime = start_runtime(options_for(server));
    auto channel = runtime->channel("xds:///orders");
    Calls calls(channel);
    if (is_called) calls.start(5, {.wait_for_ready = true});
    runtime = nullptr;
    for (const Answer& answer : calls.finish())
      CHECK_FALSE(answer.ok());
  }
  CHECK(grpc_is_down());
}

TEST_CASE("grpc_shutdown: after connections that the endpoint never answers",
          "[e2e][runtime][shutdown]") {
  MuteSocket endpoint;
  endpoint.listen();
  const FileWorld world(simple_yaml("orders", "c", {endpoint.address().str()}));
  int taken = -1;
  {
    auto runtime = world.start();
    const auto channel = runtime->channel("xds:///orders");
    Calls calls(channel);
    calls.start(1, {.wait_for_ready = true});
    taken = endpoint.take_one();
    REQUIRE(taken >= 0);
    runtime = nullptr;
    for (const Answer& answer : calls.finish())
      CHECK_FALSE(answer.ok());
  }
  // The attempt to connect ends after 20 s, or when the endpoint closes the connection. gRPC must
  // shut down in both cases.
  const bool is_closed = GENERATE(true, false);
  INFO("the endpoint closes the connection: " << is_closed);
  if (is_closed) ::close(taken);
  CHECK(grpc_is_down());
  if (!is_closed) ::close(taken);
}

TEST_CASE("grpc_shutdown: runtimes one after another, and two at once",
          "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const PlaneProcess plane(simple_yaml("orders", "c", {backend.address}));
  const auto start = [&] { return start_runtime(options_for(plane.address())); };
  for (int i = 0; i < 10; ++i) {
    check_all(start()->channel("xds:///orders"));
    // In even rounds gRPC is down before the next runtime begins. In odd rounds the next runtime
    // begins while this one ends.
    if (i % 2 == 0) CHECK(grpc_is_down());
  }
  auto first = start();
  const auto second = start();
  check_all(first->channel("xds:///orders"));
  first = nullptr;
  check_all(second->channel("xds:///orders"));
  CHECK(grpc_is_initialized() == 1);
}

TEST_CASE("grpc_shutdown: after a call in flight that outlives the runtime",
          "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const FileWorld world(simple_yaml("orders", "c", {backend.address}));
  {
    auto runtime = world.start();
    auto channel = runtime->channel("xds:///orders");
    check_sync(channel);
    Calls calls(channel);
    calls.start(5, {.work_us = 200'000});
    channel = nullptr;
    runtime = nullptr;
    for (const Answer& answer : calls.finish()) {
      INFO(answer.text());
      CHECK(answer.ok());
    }
  }
  CHECK(grpc_is_down());
}

TEST_CASE("grpc_shutdown: a callback may destroy the last of all, and begin anew",
          "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const FileWorld world(simple_yaml("orders", "c", {backend.address}));

  struct Call {
    grpc::ClientContext context;
    demo::v1::PlaceRequest request;
    demo::v1::PlaceReply reply;
  };

  const bool is_restarted = GENERATE(false, true);
  INFO("the callback starts another runtime: " << is_restarted);
  for (int i = 0; i < 10; ++i) {
    auto runtime = world.start();
    auto channel = runtime->channel("xds:///orders");
    auto stub = std::make_unique<Stub>(channel);
    check_sync(channel);
    auto one = std::make_unique<Call>();
    std::promise<void> ended;
    stub->async()->Place(&one->context, &one->request, &one->reply, [&](const grpc::Status&) {
      one = nullptr;
      stub = nullptr;
      channel = nullptr;
      runtime = nullptr;
      if (is_restarted) {
        // Meanwhile the ended runtime is torn down. Each round starts two runtimes more than the
        // round before, and so leaves the teardown a little more time.
        for (int n = 0; n < 2 * i; ++n)
          world.start();
        const auto other = world.start();
        check_callback(other->channel("xds:///orders"));
      }
      ended.set_value();
    });
    auto end = ended.get_future();
    REQUIRE(end.wait_for(kPatience) == std::future_status::ready);
  }
  CHECK(grpc_is_down());
}

TEST_CASE("grpc_shutdown: what the program has of gRPC itself stays, and keeps it",
          "[e2e][runtime][shutdown]") {
  const BackendProcess backend("good");
  const FileWorld world(simple_yaml("orders", "c", {backend.address}));
  std::shared_ptr<grpc::ChannelInterface> own =
      grpc::CreateChannel(backend.address, grpc::InsecureChannelCredentials());
  check_all(own);
  for (int i = 0; i < 3; ++i) {
    check_all(world.start()->channel("xds:///orders"));
    check_all(own);
  }
  CHECK(grpc_is_initialized() == 1);
  own = nullptr;
  CHECK(grpc_is_down());
}

}  // namespace signalbox::test
