// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <grpcpp/support/client_interceptor.h>

#include "tests/e2e/channel_world.hpp"
#include "tests/e2e/conversation.hpp"

namespace signalbox::test {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using Factories = std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>>;

// Records the actions of interceptors in order, from many threads.
class Diary {
 public:
  void note(const std::string& line) {
    const std::lock_guard lock(mutex_);
    text_ += line + "\n";
  }

  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

// An interceptor that records when it is made, when the call is sent and when the call ends. It
// also adds a header to the call, and its name to the error text of a failed call.
class Noting final : public ClientInterceptorFactoryInterface {
 public:
  Noting(std::string name, Diary& diary) : name_(std::move(name)), diary_(diary) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo* info) override {
    class Noter final : public Interceptor {
     public:
      Noter(const std::string& name, Diary& diary) : name_(name), diary_(diary) {}

      void Intercept(InterceptorBatchMethods* batch) override {
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
          diary_.note(name_ + " sends");
          batch->GetSendInitialMetadata()->emplace("x-" + name_, "was here");
        }
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS)) {
          diary_.note(name_ + " ends");
          grpc::Status& status = *batch->GetRecvStatus();
          if (!status.ok()) {
            status = {status.error_code(), status.error_message() + ", says " + name_};
          }
        }
        batch->Proceed();
      }

     private:
      const std::string& name_;
      Diary& diary_;
    };

    diary_.note(name_ + " made for " + info->method());
    return new Noter(name_, diary_);
  }

 private:
  const std::string name_;
  Diary& diary_;
};

Factories noting(Diary& diary) {
  Factories factories;
  factories.push_back(std::make_unique<Noting>("outer", diary));
  factories.push_back(std::make_unique<Noting>("inner", diary));
  return factories;
}

// An interceptor that keeps the reply's text.
class Reading final : public ClientInterceptorFactoryInterface {
 public:
  explicit Reading(std::string& text) : text_(text) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    class Reader final : public Interceptor {
     public:
      explicit Reader(std::string& text) : text_(text) {}

      void Intercept(InterceptorBatchMethods* batch) override {
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
          const auto* const reply = static_cast<const EchoReply*>(batch->GetRecvMessage());
          text_ = reply == nullptr ? "no reply" : reply->text();
        }
        batch->Proceed();
      }

     private:
      std::string& text_;
    };

    return new Reader(text_);
  }

 private:
  std::string& text_;
};

// An interceptor that answers the call itself (Hijack), so nothing is sent.
class Hijacking final : public ClientInterceptorFactoryInterface {
 public:
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    class Hijacker final : public Interceptor {
     public:
      void Intercept(InterceptorBatchMethods* batch) override {
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
          return batch->Hijack();
        }
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_RECV_MESSAGE)) {
          static_cast<EchoReply*>(batch->GetRecvMessage())->set_text("hijacked");
        }
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_RECV_STATUS)) {
          *batch->GetRecvStatus() = grpc::Status::OK;
        }
        batch->Proceed();
      }
    };

    return new Hijacker;
  }
};

// An interceptor that lets the first batch proceed on another thread.
class Lingering final : public ClientInterceptorFactoryInterface {
 public:
  ~Lingering() override {
    for (auto& thread : threads_)
      thread.join();
  }

  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    class Lingerer final : public Interceptor {
     public:
      explicit Lingerer(std::vector<std::thread>& threads) : threads_(threads) {}

      void Intercept(InterceptorBatchMethods* batch) override {
        if (!batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
          return batch->Proceed();
        }
        threads_.emplace_back([batch] { batch->Proceed(); });
      }

     private:
      std::vector<std::thread>& threads_;
    };

    return new Lingerer(threads_);
  }

 private:
  std::vector<std::thread> threads_;
};

EchoRequest say(const std::string& text) {
  EchoRequest request;
  request.set_text(text);
  request.set_times(1);
  return request;
}

}  // namespace

TEST_CASE("grpc_channel: the application's interceptors see what they see on gRPC's own channel",
          "[channel][queue][interceptor][parity]") {
  EchoServer server;
  Diary diary;
  ChannelWorld world(noting(diary));
  const auto connection = world.connect(server.address());
  const auto plain =
      grpc::experimental::CreateCustomChannelWithInterceptors("ipv4:///" + server.address().str(),
                                                              grpc::InsecureChannelCredentials(),
                                                              grpc::ChannelArguments(),
                                                              noting(diary));
  REQUIRE(plain->WaitForConnected(std::chrono::system_clock::now() + 10s));
  EchoRequest failing = say("fails");
  failing.set_status(grpc::StatusCode::ABORTED);
  for (const Manner& manner : {Manner{"one word", {say("a")}, nullptr},
                               Manner{"the server's own status", {failing}, nullptr}}) {
    for (const Way& way : ways()) {
      CAPTURE(manner.name, way.name);
      const auto expected = converse(way, manner, plain, server.service());
      const std::string expected_diary = diary.take();
      world.publish_ready({connection});
      const auto ready = converse(way, manner, world.channel, server.service());
      CHECK(ready.text(Agreement::kAll) == expected.text(Agreement::kAll));
      CHECK(diary.take() == expected_diary);
      world.publish(nullptr);
      const auto queued = [&] {
        const LatePublisher later(world, [&] { world.publish_ready({connection}); });
        return converse(way, manner, world.channel, server.service());
      }();
      CHECK(queued.text(Agreement::kAll) == expected.text(Agreement::kAll));
      CHECK(diary.take() == expected_diary);
    }
  }
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: interceptors see a pick that fails, and a call that is made again, once",
          "[channel][queue][interceptor]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  Diary diary;
  ChannelWorld world(noting(diary));
  const std::string once =
      "outer made for /signalbox.test.Echo/Unary\ninner made for /signalbox.test.Echo/Unary\n"
      "outer sends\ninner sends\ninner ends\nouter ends\n";
  grpc::ClientContext context;
  EchoReply reply;
  SECTION("a pick that fails") {
    world.publish_failure(absl::UnavailableError("all down"));
    const auto status = call(*world.stub, api, context, {}, reply);
    CHECK(absl::EndsWith(status.error_message(), ", says inner, says outer"));
  }
  SECTION("a connection that has died") {
    EchoServer dying;
    EchoServer living;
    const auto dead = world.connect(dying.address());
    const auto alive = world.connect(living.address());
    world.publish_ready({dead});
    kill(dying, dead);
    const LatePublisher later(world, [&] { world.publish_ready({alive}); });
    CHECK(call(*world.stub, api, context, {}, reply).ok());
    CHECK(absl::StrContains(reply.saw(), "x-inner="));
    world.publish(nullptr);
  }
  SECTION("attempts that failed") {
    const int failures = GENERATE(1, 9);
    CAPTURE(failures);
    EchoServer server;
    world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 3, 1ms, 4ms});
    world.publish_ready({world.connect(server.address())});
    EchoRequest request = say("again");
    request.set_failures(failures);
    request.set_status(grpc::StatusCode::UNAVAILABLE);
    const auto status = call(*world.stub, api, context, request, reply);
    CHECK(server.service().calls == (failures == 1 ? 2 : 3));
    CHECK(status.ok() == (failures == 1));
    CHECK((status.ok() || absl::EndsWith(status.error_message(), ", says inner, says outer")));
    world.publish(nullptr);
  }
  CHECK(diary.take() == once);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: an interceptor reads the reply, whichever attempt brought it",
          "[channel][interceptor][retry][A6]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const int failures = GENERATE(0, 1);
  INFO(to_string(api) << ", " << failures << " failures");
  std::string read = "nothing";
  Factories factories;
  factories.push_back(std::make_unique<Reading>(read));
  EchoServer server;
  ChannelWorld world(std::move(factories));
  world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 3, 1ms, 4ms});
  world.publish_ready({world.connect(server.address())});
  EchoRequest request = say("hello");
  request.set_failures(failures);
  request.set_status(failures > 0 ? grpc::StatusCode::UNAVAILABLE : 0);
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, api, context, request, reply).ok());
  CHECK(read == "hello");
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: an interceptor may answer in the server's place",
          "[channel][queue][interceptor]") {
  const bool queued = GENERATE(false, true);
  Factories factories;
  factories.push_back(std::make_unique<Hijacking>());
  EchoServer server;
  ChannelWorld world(std::move(factories));
  const auto connection = world.connect(server.address());
  if (!queued) world.publish_ready({connection});
  {
    const LatePublisher later(world, [&] { world.publish_ready({connection}); });
    grpc::ClientContext context;
    EchoReply reply;
    CHECK(world.stub->Unary(&context, {}, &reply).ok());
    CHECK(reply.text() == "hijacked");
  }
  CHECK(server.service().calls == 0);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: an interceptor may take its time", "[channel][queue][interceptor]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool queued = GENERATE(false, true);
  CAPTURE(to_string(api), queued);
  Factories factories;
  factories.push_back(std::make_unique<Lingering>());
  EchoServer server;
  ChannelWorld world(std::move(factories));
  const auto connection = world.connect(server.address());
  if (!queued) world.publish_ready({connection});
  const LatePublisher later(world, [&] { world.publish_ready({connection}); });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, api, context, {}, reply).ok());
}

TEST_CASE("grpc_channel: gRPC's global interceptor sees every call once",
          "[channel][queue][interceptor]") {
  const bool queued = GENERATE(false, true);
  EchoServer server;
  ChannelWorld world;
  const auto connection = world.connect(server.address());
  if (!queued) world.publish_ready({connection});
  Diary diary;
  Noting global("global", diary);
  grpc::experimental::RegisterGlobalClientInterceptorFactory(&global);
  {
    const LatePublisher later(world, [&] { world.publish_ready({connection}); });
    grpc::ClientContext context;
    EchoReply reply;
    CHECK(world.stub->Unary(&context, {}, &reply).ok());
    CHECK(absl::StrContains(reply.saw(), "x-global="));
  }
  grpc::experimental::TestOnlyResetGlobalClientInterceptorFactory();
  CHECK(diary.take() == "global made for /signalbox.test.Echo/Unary\nglobal sends\nglobal ends\n");
}

}  // namespace signalbox::test
