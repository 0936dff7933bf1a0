// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <set>

#include "absl/strings/match.h"

#include "channel/grpc/queued_call.hpp"
#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

TEST_CASE("queued_call: a call without a configuration waits for one, and is then as any other",
          "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_queue();  // The call is routed, but has no pick.
    world.publish_ready({connection});
  });
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
  request.set_text("at last");
  const auto status = call(*world.stub, api, context, request, reply);
  later.join();
  REQUIRE(status.ok());
  CHECK(reply.text() == "at last");
  CHECK(absl::EndsWith(context.peer(), ":" + std::to_string(reply.port())));
  CHECK(context.GetServerInitialMetadata().count("server") == 1);
  CHECK(context.GetServerTrailingMetadata().count("load") == 1);
  CHECK(world.counts->queued() == 1);
  CHECK(world.waiting->size() == 0);
  world.wait_for_no_uses();
}

// The target's name is "/", for which gRPC's own resolver makes no channel.
TEST_CASE("queued_call: waits under a target, too, that gRPC itself would refuse",
          "[channel][queue]") {
  ChannelWorld world({}, grpc::InsecureChannelCredentials(), "xds:////");
  EchoServer server;
  const auto connection = world.connect(server.address());
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_ready({connection});
  });
  grpc::ClientContext context;
  EchoReply reply;
  const auto status = world.stub->Unary(&context, {}, &reply);
  later.join();
  INFO(status.error_message());
  CHECK(status.ok());
}

TEST_CASE("queued_call: batches that are started one by one all reach the server",
          "[channel][queue]") {
  const bool queued = GENERATE(false, true);
  INFO((queued ? "waited" : "ready"));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  if (!queued) world.publish_ready({connection});

  SECTION("async, with the initial metadata apart") {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    EchoReply reply;
    grpc::Status status;
    auto reader = world.stub->AsyncUnary(&context, {}, &queue);
    reader->ReadInitialMetadata(&context);
    reader->Finish(&reply, &status, &status);
    if (queued) world.publish_ready({connection});
    void* tag = nullptr;
    bool ok = false;
    std::set<void*> tags;  // gRPC does not promise in which order two batches end.
    for (int events = 0; events < 2; ++events) {
      REQUIRE(queue.Next(&tag, &ok));
      CHECK(ok);
      tags.insert(tag);
    }
    CHECK(tags == std::set<void*>{&context, &status});
    CHECK(context.GetServerInitialMetadata().count("server") == 1);
    CHECK(status.ok());
    CHECK(reply.port() == server.service().port);
    queue.Shutdown();
    CHECK_FALSE(queue.Next(&tag, &ok));
  }
  SECTION("callback, with a reactor") {
    class Reactor final : public grpc::ClientUnaryReactor {
     public:
      void OnReadInitialMetadataDone(bool ok) override { metadata = ok; }

      void OnDone(const grpc::Status& end) override {
        const std::lock_guard lock(mutex);
        status = end;
        done = true;
        changed.notify_all();
      }

      std::mutex mutex;
      std::condition_variable changed;
      grpc::Status status;
      bool metadata = false;
      bool done = false;
    };

    grpc::ClientContext context;
    EchoRequest request;
    EchoReply reply;
    Reactor reactor;
    world.stub->async()->Unary(&context, &request, &reply, &reactor);
    reactor.StartCall();
    if (queued) world.publish_ready({connection});
    std::unique_lock lock(reactor.mutex);
    REQUIRE(reactor.changed.wait_for(lock, 10s, [&] { return reactor.done; }));
    CHECK(reactor.status.ok());
    CHECK(reactor.metadata);
    CHECK(reply.port() == server.service().port);
  }
  CHECK(world.counts->queued() == (queued ? 1 : 0));
  world.wait_for_no_uses();
}

TEST_CASE("queued_call: it ends at its deadline, and says what it waited for", "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  world.publish_queue();
  grpc::ClientContext context;
  EchoReply reply;
  context.set_deadline(std::chrono::system_clock::now() + 60ms);
  const auto status = call(*world.stub, api, context, {}, reply);
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(status.error_message() ==
        "xds:///orders: cluster orders: Deadline Exceeded while waiting for a connection "
        "(node ID: node-7)");
  CHECK(world.waiting->size() == 0);
  CHECK(world.stats->started() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("queued_call: at its deadline it says what others would have been told",
          "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + 60ms);
  SECTION("in a cluster that failed") {
    world.publish_failure(absl::UnavailableError("all down"));
    CHECK(call(*world.stub, api, context, {}, reply).error_message() ==
          "xds:///orders: cluster orders: Deadline Exceeded while waiting for a connection; "
          "last error: all down (node ID: node-7)");
  }
  SECTION("without a configuration") {
    CHECK(call(*world.stub, api, context, {}, reply).error_message() ==
          "xds:///orders: Deadline Exceeded while waiting for a configuration (node ID: node-7)");
  }
}

TEST_CASE("queued_call: a timeout that is learnt while waiting counts from the call's start",
          "[channel][queue][A31-30]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  world.timeout = 80ms;
  std::chrono::system_clock::time_point known;
  std::thread later([&] {
    world.wait_for_queue(1);
    known = std::chrono::system_clock::now();
    world.publish_queue();
  });
  grpc::ClientContext context;
  EchoReply reply;
  const auto start = std::chrono::system_clock::now();
  const auto status = call(*world.stub, api, context, {}, reply);
  later.join();
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(status.error_message() ==
        "xds:///orders: cluster orders: the route's timeout is over while waiting for a connection "
        "(node ID: node-7)");
  // The route's timeout counts from the start of the call, not from when the route was known.
  CHECK(context.deadline() >= start + 80ms);
  CHECK(context.deadline() <= known + 80ms);
  world.wait_for_no_uses();
}

TEST_CASE("queued_call: cancelling it ends it", "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  world.publish_queue();
  grpc::ClientContext context;
  EchoReply reply;
  std::thread other([&] {
    world.wait_for_queue(1);
    context.TryCancel();
  });
  const auto status = call(*world.stub, api, context, {}, reply);
  other.join();
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(world.waiting->size() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("queued_call: one that is cancelled before it is started ends when it is",
          "[channel][queue]") {
  ChannelWorld world;
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  EchoReply reply;
  grpc::Status status;
  auto reader = world.stub->PrepareAsyncUnary(&context, {}, &queue);
  context.TryCancel();
  reader->StartCall();
  reader->Finish(&reply, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&tag, &ok));
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
}

TEST_CASE("queued_call: a failure that is published fails it, unless it is wait_for_ready",
          "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool wait_for_ready = GENERATE(false, true);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_failure(absl::UnavailableError("all down"));
    if (wait_for_ready) world.publish_ready({connection});
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(wait_for_ready);
  const auto status = call(*world.stub, api, context, {}, reply);
  later.join();
  CHECK(status.ok() == wait_for_ready);
  if (!wait_for_ready) {
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(status.error_message() == "xds:///orders: cluster orders: all down (node ID: node-7)");
  }
  world.wait_for_no_uses();
}

TEST_CASE("queued_call: a wait_for_ready call waits where others fail", "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  world.publish_failure(absl::UnavailableError("all down"));
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_ready({connection});
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(true);
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
}

TEST_CASE("queued_call: the end of the runtime fails the calls that wait", "[channel][queue]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  std::thread later([&] {
    world.wait_for_queue(1);
    world.waiting->close();
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(true);
  const auto status = call(*world.stub, api, context, {}, reply);
  later.join();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(absl::StrContains(status.error_message(), ": the signalbox runtime has been shut down"));
}

TEST_CASE("queued_call: destroying the channel and the stub leaves waiting calls alone",
          "[channel][queue]") {
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  grpc::CompletionQueue queue;

  struct Call {
    grpc::ClientContext context;
    EchoReply reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<EchoReply>> reader;
  };

  std::vector<Call> calls(10);
  for (auto& each : calls) {
    each.reader = world.stub->AsyncUnary(&each.context, {}, &queue);
    each.reader->Finish(&each.reply, &each.status, &each);
  }
  world.stub = nullptr;
  world.channel = nullptr;
  // An application may shut the queue down while its calls wait; the queue ends after the calls.
  queue.Shutdown();
  SECTION("and they go on when there is a connection") {
    world.publish_ready({connection});
    void* tag = nullptr;
    bool ok = false;
    std::size_t events = 0;
    while (queue.Next(&tag, &ok))
      ++events;
    CHECK(events == calls.size());
    for (const auto& each : calls)
      CHECK(each.status.ok());
  }
  SECTION("and they end when they are cancelled") {
    for (auto& each : calls)
      each.context.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
    }
    for (const auto& each : calls)
      CHECK(each.status.error_code() == grpc::StatusCode::CANCELLED);
  }
}

// Answers a call by making another one, under the context of the first.
class Proxy final : public Echo::Service {
 public:
  explicit Proxy(Echo::Stub& stub) : stub_(stub) {}

  grpc::Status Unary(grpc::ServerContext* context,
                     const EchoRequest* request,
                     EchoReply* reply) override {
    const auto onward = grpc::ClientContext::FromServerContext(*context);
    const auto status = stub_.Unary(onward.get(), *request, reply);
    code = status.error_code();
    return status;
  }

  std::atomic<int> code{-1};

 private:
  Echo::Stub& stub_;
};

TEST_CASE("queued_call: what a server's context passes on reaches a call that waits",
          "[channel][queue]") {
  const bool bound = GENERATE(false, true);
  INFO((bound ? "bound meanwhile" : "waiting to the end"));
  ChannelWorld world;
  EchoServer leaf;
  const auto connection = world.connect(leaf.address());
  Proxy proxy(*world.stub);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&proxy);
  const auto server = builder.BuildAndStart();
  const auto stub = Echo::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
  request.set_hold(true);
  std::thread other([&] {
    world.wait_for_queue(1);
    if (bound) {
      world.publish_ready({connection});
      while (leaf.service().calls == 0)
        std::this_thread::yield();
    }
    context.TryCancel();
  });
  CHECK(stub->Unary(&context, request, &reply).error_code() == grpc::StatusCode::CANCELLED);
  other.join();
  server->Shutdown();
  CHECK(proxy.code == grpc::StatusCode::CANCELLED);
  world.wait_for_no_uses();
}

TEST_CASE("queued_call: a publication that goes by while it asks is not missed",
          "[channel][queue]") {
  const bool at_once = GENERATE(true, false);
  INFO((at_once ? "at its first pick" : "when it was woken"));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  std::unique_ptr<const lb::Snapshot> old;
  const auto overtaken = [&](const PickArgs&) {
    if (old == nullptr) {
      old = world.exchange(ChannelWorld::ready({connection}));
      world.waiting->publish();  // Wakes no call: the only one is still in its pick.
    }
    return PickResult{};
  };
  if (at_once) world.publish(overtaken);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  EchoReply reply;
  grpc::Status status;
  auto reader = world.stub->AsyncUnary(&context, {}, &queue);
  reader->Finish(&reply, &status, &status);
  if (!at_once) world.publish(overtaken);
  void* tag = nullptr;
  bool ok = false;
  const auto limit = std::chrono::system_clock::now() + 10s;
  REQUIRE(queue.AsyncNext(&tag, &ok, limit) == grpc::CompletionQueue::GOT_EVENT);
  CHECK(status.ok());
  lb::SnapshotCell::wait_for_readers();
  old = nullptr;
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
}

TEST_CASE("queued_call: a runtime that ends while it asks is not missed", "[channel][queue]") {
  ChannelWorld world;
  grpc::ClientContext context;
  EchoReply reply;
  const LatePublisher later(world, [&] {
    world.publish([&](const PickArgs&) {
      world.waiting->close();  // Ends no call: the only one is still in its pick.
      return PickResult{};
    });
  });
  const auto status = call(*world.stub, Api::kAsync, context, {}, reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() ==
        "xds:///orders: the signalbox runtime has been shut down (node ID: node-7)");
}

TEST_CASE("queued_call: no wake-up is lost while pickers come and go", "[channel][queue][race]") {
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  std::atomic<bool> stop{false};
  // A call that still waits while a picker serves has lost its wake-up.
  std::atomic<bool> lost{false};
  std::thread publisher([&] {
    while (!stop) {
      world.publish_queue();
      world.publish(nullptr);
      world.publish_ready({connection});
      const auto limit = std::chrono::steady_clock::now() + 5s;
      while (world.waiting->size() != 0 && !lost) {
        lost = std::chrono::steady_clock::now() > limit;
        std::this_thread::yield();
      }
    }
  });
  RaceEnds ends;
  race_calls(*world.stub, 400, ends);
  stop = true;
  publisher.join();
  CHECK_FALSE(lost);
  CHECK(ends.wrong == 0);
  CHECK(ends.ok > 1'000);
  CHECK(ends.ok + ends.expected == 1'600);
  CHECK(world.counts->queued() > 0);
  CHECK(world.waiting->size() == 0);
  world.wait_for_no_uses();
  CHECK_FALSE(connection->in_use());
}

}  // namespace
}  // namespace signalbox::test
