// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/client_interceptor.h>

#include "lb/request_limit.hpp"
#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

// An interceptor that runs `act` once, when the first call is sent: after the last check that the
// connection is ready, and before anything is sent.
class AtSending final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit AtSending(std::function<void()> act) : act_(std::move(act)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    class Sending final : public grpc::experimental::Interceptor {
     public:
      explicit Sending(std::function<void()>& act) : act_(act) {}

      void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
        using Point = grpc::experimental::InterceptionHookPoints;
        const bool sends = batch->QueryInterceptionHookPoint(Point::PRE_SEND_INITIAL_METADATA);
        if (sends && act_ != nullptr) std::exchange(act_, nullptr)();
        batch->Proceed();
      }

     private:
      std::function<void()>& act_;
    };

    return new Sending(act_);
  }

 private:
  std::function<void()> act_;
};

// A channel to two servers. An interceptor of type Interceptor kills one of the servers.
template <typename Interceptor>
struct Dying {
  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

  Interceptors interceptors() {
    Interceptors only;
    only.push_back(std::make_unique<Interceptor>([this] {
      kill(dying, dead);
      if (then != nullptr) then();
    }));
    return only;
  }

  EchoServer dying;
  EchoServer living;
  std::function<void()> then;  ///< Called right after the server was killed, if set.
  ChannelWorld world{interceptors()};
  const ConnectionPtr dead = world.connect(dying.address());
  const ConnectionPtr alive = world.connect(living.address());
};

TEST_CASE("grpc_channel: a call that was given a dead connection waits, and is picked again",
          "[channel][repick]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool wait_for_ready = GENERATE(false, true);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer dying;
  EchoServer living;
  const auto dead = world.connect(dying.address());
  const auto alive = world.connect(living.address());
  world.publish_ready({dead});
  kill(dying, dead);
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_ready({alive});
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(wait_for_ready);
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
  CHECK(reply.port() == living.service().port);
  CHECK(world.counts->repicked() == 1);
  world.wait_for_no_uses();
  CHECK_FALSE(dead->in_use());
}

namespace {

/// Picks the first connection that the call does not avoid, else the first.
ScriptedPicker::Script first_untried(std::vector<ConnectionPtr> connections) {
  return [connections = std::move(connections)](const PickArgs& args) {
    const auto found = std::ranges::find_if(
        connections, [&args](const auto& connection) { return !was_tried(args, *connection); });
    PickResult result;
    result.outcome = Complete{found == connections.end() ? connections[0].get() : found->get()};
    return result;
  };
}

}  // namespace

// No snapshot is published after the servers have died.
TEST_CASE("grpc_channel: a call that was given a dead connection goes to another endpoint at once",
          "[channel][repick]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const std::size_t deaths = GENERATE(1, 3);
  CAPTURE(to_string(api), deaths);
  ChannelWorld world;
  EchoServer living;
  std::vector<EchoServer> dying(deaths);
  std::vector<ConnectionPtr> connections;
  for (const EchoServer& server : dying)
    connections.push_back(world.connect(server.address()));
  connections.push_back(world.connect(living.address()));
  world.publish(first_untried(connections));
  for (std::size_t at = 0; at < deaths; ++at)
    kill(dying[at], connections[at]);
  for (int calls = 1; calls <= 2; ++calls) {
    grpc::ClientContext context;
    EchoReply reply;
    CHECK(call(*world.stub, api, context, {}, reply).ok());
    CHECK(reply.port() == living.service().port);
    CHECK(world.counts->repicked() == calls);
  }
  world.wait_for_no_uses();
  for (std::size_t at = 0; at < deaths; ++at)
    CHECK_FALSE(connections[at]->in_use());
}

TEST_CASE("grpc_channel: a call that was given four dead connections waits for a snapshot",
          "[channel][repick]") {
  ChannelWorld world;
  EchoServer living;
  std::vector<EchoServer> dying(4);
  std::vector<ConnectionPtr> connections;
  for (const EchoServer& server : dying)
    connections.push_back(world.connect(server.address()));
  connections.push_back(world.connect(living.address()));
  std::atomic<std::size_t> picks{0};
  const auto first = first_untried(connections);
  const auto counting = [&](const PickArgs& args) {
    ++picks;
    return first(args);
  };
  world.publish(counting);
  for (std::size_t at = 0; at < dying.size(); ++at)
    kill(dying[at], connections[at]);
  std::size_t picks_before = 0;
  std::thread later([&] {
    world.wait_for_queue(1);
    picks_before = picks;
    world.publish(first_untried({connections[4], connections[0]}));
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, Api::kSync, context, {}, reply).ok());
  later.join();
  CHECK(reply.port() == living.service().port);
  CHECK(picks_before == 4);
  CHECK(picks == 4);
  CHECK(world.counts->repicked() == 1);
  world.wait_for_no_uses();
}

// The addresses that a call avoids are forgotten with their snapshot: their endpoints may have
// connections again.
TEST_CASE("grpc_channel: a call may go to an endpoint that has come back", "[channel][repick]") {
  ChannelWorld world;
  EchoServer dying;
  EchoServer living;
  const auto dead = world.connect(dying.address());
  const auto alive = world.connect(living.address());
  std::atomic<bool> is_avoided{true};
  const auto only = [](const ConnectionPtr& connection) { return first_untried({connection}); };
  world.publish(only(dead));
  kill(dying, dead);
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish([&, picks = only(alive)](const PickArgs& args) {
      is_avoided = was_tried(args, *dead);
      return picks(args);
    });
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, Api::kSync, context, {}, reply).ok());
  later.join();
  CHECK_FALSE(is_avoided);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: a call whose connection has died holds no place while it waits",
          "[channel][repick][A32]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  const auto limit = std::make_shared<const lb::RequestLimit>();
  const lb::RequestGate gate(limit, 1, ClusterName("orders"), {});
  ChannelWorld world;
  EchoServer dying;
  EchoServer living;
  const auto dead = world.connect(dying.address());
  const auto alive = world.connect(living.address());
  const auto through = [&gate](const ConnectionPtr& connection) {
    return [&gate, connection](const PickArgs&) {
      PickResult result;
      result.outcome = Complete{connection.get()};
      result.trackers.add_gate(gate);
      return result;
    };
  };
  world.publish(through(dead));
  kill(dying, dead);
  std::int64_t waiting = -1;
  std::thread later([&] {
    world.wait_for_queue(1);
    waiting = limit->in_flight();
    world.publish(through(alive));
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
  CHECK(waiting == 0);
  CHECK(reply.port() == living.service().port);
  world.wait_for_no_uses();
  CHECK(limit->in_flight() == 0);
}

// A connection can always die between the pick and the sending, when the thread is interrupted
// there.
TEST_CASE("retried_call: a call whose connection died before it was sent is made again",
          "[channel][repick]") {
  Dying<AtSending> scene;
  ChannelWorld& world = scene.world;
  const auto alive = scene.alive;
  world.publish_ready({scene.dead});
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  EchoRequest request;
  EchoReply reply;
  grpc::Status status;
  context.AddMetadata("tenant", "blue");
  context.set_wait_for_ready(GENERATE(false, true));
  auto reader = [&] {
    request.set_text("twice");
    return world.stub->PrepareAsyncUnary(&context, request, &queue);
  }();
  const auto finish = [&] {
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    CHECK(tag == &status);
    CHECK(ok);
    CHECK(world.counts->repicked() > 0);
    queue.Shutdown();
    CHECK_FALSE(queue.Next(&tag, &ok));
  };
  const auto start = [&] {
    reader->StartCall();
    reader->Finish(&reply, &status, &status);
  };

  SECTION("on the connection that is there now") {
    world.publish_ready({alive});  // The call already has its pick.
    start();
    finish();
    REQUIRE(status.ok());
    CHECK(reply.text() == "twice");
    CHECK(reply.port() == scene.living.service().port);
    CHECK(context.GetServerInitialMetadata().count("server") == 1);
    CHECK(context.GetServerTrailingMetadata().count("load") == 1);
    CHECK(world.stats->started() == 2);
    CHECK(world.stats->completed(0) == 1);
  }
  SECTION("after it has waited for one") {
    start();
    std::thread later([&] {
      world.wait_for_queue(1);
      world.publish_ready({alive});
    });
    finish();
    later.join();
    REQUIRE(status.ok());
    CHECK(reply.text() == "twice");
    CHECK(context.peer() == "ipv4:" + scene.living.address().str());
  }
  SECTION("and can be cancelled while it waits for one") {
    start();
    std::thread later([&] {
      world.wait_for_queue(1);
      context.TryCancel();
    });
    finish();
    later.join();
    CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  }
  SECTION("and fails as the next pick says") {
    world.publish([](const PickArgs&) {
      PickResult result;
      result.outcome = Drop{absl::UnavailableError("nothing left")};
      return result;
    });
    start();
    finish();
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(status.error_message() ==
          "xds:///orders: cluster orders: nothing left (node ID: node-7)");
  }
  world.wait_for_no_uses();
  CHECK_FALSE(scene.dead->in_use());
  CHECK_FALSE(alive->in_use());
}

TEST_CASE("unsent_call: a call that was put off before is not counted again for that",
          "[channel][repick]") {
  Dying<AtSending> scene;
  ChannelWorld& world = scene.world;
  EchoServer first;
  const auto gone = world.connect(first.address());
  world.publish_ready({gone});
  kill(first, gone);
  std::promise<void> second_died;
  scene.then = [&] {
    world.publish_queue();
    second_died.set_value();
  };
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_ready({scene.dead});
    second_died.get_future().wait();
    world.wait_for_queue(1);
    world.publish_ready({scene.alive});
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, {}, &reply).ok());
  later.join();
  CHECK(reply.port() == scene.living.service().port);
  CHECK(world.counts->repicked() == 2);  // Its first connection was dead, its second died.
}

// A tracker that records how the calls of an endpoint ended.
class Ends final : public CallTracker {
 public:
  void ended(const CallEnd& end) const noexcept override {
    const std::lock_guard lock(mutex_);
    codes_.push_back(end.code);
  }

  std::vector<std::optional<int>> codes() const {
    const std::lock_guard lock(mutex_);
    return codes_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::optional<int>> codes_;
};

ScriptedPicker::Script counted(const Ends& ends, const ConnectionPtr& connection) {
  return [&ends, connection](const PickArgs&) {
    PickResult result;
    result.outcome = Complete{connection.get()};
    result.trackers.add(ends);
    return result;
  };
}

TEST_CASE("retried_call: a call that was not sent says nothing of its endpoint",
          "[channel][repick]") {
  const bool is_stream = GENERATE(false, true);
  const Ends of_dead;
  const Ends of_alive;
  Dying<AtSending> scene;
  ChannelWorld& world = scene.world;
  world.publish(counted(of_dead, scene.dead));
  scene.then = [&] { world.publish(counted(of_alive, scene.alive)); };
  grpc::ClientContext context;
  EchoReply reply;
  if (is_stream) {
    const auto stream = world.stub->Chat(&context);
    CHECK(stream->WritesDone());
    CHECK(stream->Finish().ok());
  } else {
    CHECK(world.stub->Unary(&context, {}, &reply).ok());
  }
  CHECK(of_alive.codes() == std::vector<std::optional<int>>{grpc::StatusCode::OK});
  world.wait_for_no_uses();
  CHECK(of_dead.codes() == std::vector<std::optional<int>>{std::nullopt});
}

TEST_CASE("grpc_channel: a call that is given up without its status ends as a cancelled one",
          "[channel]") {
  const Ends ends;
  EchoServer server;
  ChannelWorld world;
  const auto connection = world.connect(server.address());
  world.publish(counted(ends, connection));
  {
    grpc::ClientContext context;
    const auto stream = world.stub->Chat(&context);
    CHECK(ends.codes().empty());
  }
  world.wait_for_no_uses();
  CHECK(ends.codes() == std::vector<std::optional<int>>{grpc::StatusCode::CANCELLED});
  CHECK(world.stats->completed(grpc::StatusCode::CANCELLED) == 1);
}

// An interceptor that holds the first call's batch back. It lets that batch proceed while it
// intercepts the second call's batch.
class Resuming final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit Resuming(std::function<void()> before) : before_(std::move(before)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    class Holder final : public grpc::experimental::Interceptor {
     public:
      explicit Holder(Resuming& all) : all_(all) {}

      void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
        using Point = grpc::experimental::InterceptionHookPoints;
        if (!batch->QueryInterceptionHookPoint(Point::PRE_SEND_INITIAL_METADATA))
          return batch->Proceed();
        if (all_.sending_++ == 0) {
          all_.held_ = batch;
          return;
        }
        if (all_.held_ != nullptr) {
          all_.before_();
          std::exchange(all_.held_, nullptr)->Proceed();
        }
        batch->Proceed();
      }

     private:
      Resuming& all_;
    };

    return new Holder(*this);
  }

 private:
  const std::function<void()> before_;
  int sending_ = 0;
  grpc::experimental::InterceptorBatchMethods* held_ = nullptr;
};

TEST_CASE("retried_call: a batch that goes on within another call's is not taken for that",
          "[channel][repick][interceptor]") {
  Dying<Resuming> scene;
  ChannelWorld& world = scene.world;
  const auto alive = scene.alive;
  world.publish_ready({scene.dead});
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  EchoRequest request;
  EchoReply reply;
  grpc::Status status;
  auto reader = world.stub->AsyncUnary(&context, request, &queue);
  reader->Finish(&reply, &status, &status);

  world.publish_ready({alive});
  grpc::ClientContext other_context;
  EchoReply other_reply;
  request.set_text("the other");
  CHECK(world.stub->Unary(&other_context, request, &other_reply).ok());
  CHECK(other_reply.text() == "the other");

  // The call was never sent. But the channel does not know what its batch contained, so it cannot
  // send the batch again, and the call fails.
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&tag, &ok));
  CHECK(tag == &status);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(reply.text().empty());
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: a call that is prepared, and started when its connection has died, waits",
          "[channel][repick]") {
  const bool is_cancelled = GENERATE(false, true);
  ChannelWorld world;
  EchoServer dying;
  EchoServer living;
  const auto dead = world.connect(dying.address());
  const auto alive = world.connect(living.address());
  world.publish_ready({dead});
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  context.AddMetadata("x-tenant", "blue");
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;

  SECTION("a stream, asynchronous") {
    const auto stream = world.stub->PrepareAsyncChat(&context, &queue);
    kill(dying, dead);
    if (is_cancelled) context.TryCancel();
    stream->StartCall(&queue);
    if (!is_cancelled) {
      world.wait_for_queue(1);
      world.publish_ready({alive});
    }
    REQUIRE(queue.Next(&tag, &ok));
    CHECK(ok == !is_cancelled);
    if (!is_cancelled) {
      EchoRequest request;
      EchoReply reply;
      request.set_text("hello");
      stream->WriteLast(request, grpc::WriteOptions(), &queue);
      REQUIRE(queue.Next(&tag, &ok));
      stream->Read(&reply, &queue);
      REQUIRE(queue.Next(&tag, &ok));
      CHECK(reply.text() == "hello");
      CHECK(reply.port() == living.service().port);
      CHECK(absl::StrContains(reply.saw(), "x-tenant="));
    }
    stream->Finish(&status, &queue);
    REQUIRE(queue.Next(&tag, &ok));
  }
  SECTION("a stream, with a reactor") {
    struct Reactor final : grpc::ClientReadReactor<EchoReply> {
      void OnReadDone(bool read) override {
        if (!read) return;
        ++replies;
        StartRead(&reply);
      }

      void OnDone(const grpc::Status& end) override { ended.set_value(end); }

      EchoReply reply;
      int replies = 0;
      std::promise<grpc::Status> ended;
    };

    Reactor reactor;
    EchoRequest request;
    request.set_times(3);
    world.stub->async()->Expand(&context, &request, &reactor);
    reactor.StartRead(&reactor.reply);
    kill(dying, dead);
    if (is_cancelled) context.TryCancel();
    reactor.StartCall();
    if (!is_cancelled) {
      world.wait_for_queue(1);
      world.publish_ready({alive});
    }
    auto ended = reactor.ended.get_future();
    REQUIRE(ended.wait_for(10s) == std::future_status::ready);
    status = ended.get();
    CHECK(reactor.replies == (is_cancelled ? 0 : 3));
  }
  SECTION("a generic unary call") {
    grpc::GenericStub stub(world.channel);
    const grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    const auto reader =
        stub.PrepareUnaryCall(&context, "/signalbox.test.Echo/Unary", request, &queue);
    kill(dying, dead);
    if (is_cancelled) context.TryCancel();
    reader->StartCall();
    reader->Finish(&response, &status, &queue);
    if (!is_cancelled) {
      world.wait_for_queue(1);
      world.publish_ready({alive});
    }
    REQUIRE(queue.Next(&tag, &ok));
  }
  CHECK(status.error_code() == (is_cancelled ? grpc::StatusCode::CANCELLED : grpc::StatusCode::OK));
  CHECK(world.counts->repicked() == 1);
  CHECK(living.service().calls == (is_cancelled ? 0 : 1));
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
  world.wait_for_no_uses();
  CHECK_FALSE(dead->in_use());
}

TEST_CASE("grpc_channel: of calls under way when a server goes, those not sent do not fail",
          "[channel][repick][race]") {
  ChannelWorld world;
  EchoServer living;
  const auto alive = world.connect(living.address());
  int failed_unsent = 0;
  std::int64_t finished = 0;
  for (int round = 0; round < 20; ++round) {
    EchoServer dying;
    const auto dead = world.connect(dying.address());
    world.publish_ready({dead});
    std::atomic<bool> stop{false};
    std::atomic<int> bad{0};
    std::atomic<int> done{0};
    std::vector<std::thread> callers;
    callers.reserve(3);
    for (int thread = 0; thread < 3; ++thread) {
      callers.emplace_back([&] {
        while (!stop) {
          grpc::ClientContext context;
          EchoReply reply;
          const auto status = world.stub->Unary(&context, {}, &reply);
          ++done;
          const bool is_unsent = absl::StrContains(status.error_message(), "failed to connect") ||
                                 status.error_message() == "Transport closed";
          if (is_unsent) ++bad;
        }
      });
    }
    while (done < 30)
      std::this_thread::yield();
    kill(dying, dead);
    world.publish_ready({alive});
    const int before = done;
    while (done < before + 30)
      std::this_thread::yield();
    stop = true;
    for (auto& caller : callers)
      caller.join();
    failed_unsent += bad;
    finished += done;
  }
  CHECK(failed_unsent == 0);
  CHECK(finished >= 1'200);
  world.wait_for_no_uses();
}

}  // namespace
}  // namespace signalbox::test
