// SPDX-License-Identifier: Apache-2.0
//
// Further settings of a call's context: authority, deadline, credentials, the parent call; and the
// channel that interceptors call through. Each test but the interceptors' runs with a call that has
// its connection at once, and with a call that waits for it.
#include <atomic>
#include <chrono>
#include <optional>

#include "absl/strings/match.h"
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/client_interceptor.h>

#include "tests/e2e/channel_world.hpp"
#include "tests/support/localhost_certificate.hpp"

namespace signalbox::test {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using Factories = std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>>;

// A server with one method, which calls `answer`.
class FunctionServer final : public Echo::Service {
 public:
  using Answer = std::function<grpc::Status(grpc::ServerContext& context, EchoReply& reply)>;

  explicit FunctionServer(Answer answer,
                          const std::shared_ptr<grpc::ServerCredentials>& credentials =
                              grpc::InsecureServerCredentials())
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  Address address() const { return Address("127.0.0.1:" + std::to_string(port_)); }

 private:
  grpc::Status Unary(grpc::ServerContext* context, const EchoRequest*, EchoReply* reply) override {
    return answer_(*context, *reply);
  }

  const Answer answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A world in which the next call has its connection at once, or waits for it.
class Setting {
 public:
  Setting(ChannelWorld& world, const Address& address)
      : world_(world), connection_(world.connect(address)) {
    if (!queued_) world_.publish_ready({connection_});
  }

  grpc::Status call(grpc::ClientContext& context, EchoReply& reply) {
    const LatePublisher later(world_, [this] { world_.publish_ready({connection_}); });
    return test::call(*world_.stub, api_, context, {}, reply);
  }

 private:
  ChannelWorld& world_;
  const Api api_ = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool queued_ = GENERATE(false, true);
  const ConnectionPtr connection_;
};

// Adds a token, as an application's plug-in would.
class Token final : public grpc::MetadataCredentialsPlugin {
 public:
  grpc::Status GetMetadata(grpc::string_ref,
                           grpc::string_ref,
                           const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("x-token", "valid");
    return grpc::Status::OK;
  }
};

// A plug-in that has no token, and fails with this code.
class NoToken final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit NoToken(grpc::StatusCode code) : code_(code) {}

  grpc::Status GetMetadata(grpc::string_ref,
                           grpc::string_ref,
                           const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>*) override {
    return {code_, "no such key"};
  }

 private:
  const grpc::StatusCode code_;
};

// An interceptor that makes another call before each call that it intercepts, on the channel that
// gRPC gives to interceptors. Counts the calls that it intercepts.
class Preceding final : public ClientInterceptorFactoryInterface {
 public:
  explicit Preceding(int& met, std::string& answer) : met_(met), answer_(answer) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    class Before final : public Interceptor {
     public:
      explicit Before(std::string& answer) : answer_(answer) {}

      void Intercept(InterceptorBatchMethods* batch) override {
        if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
          const auto channel = batch->GetInterceptedChannel();
          grpc::ClientContext context;
          EchoReply reply;
          const auto status =
              Echo::NewStub(std::shared_ptr<grpc::ChannelInterface>(channel.get(), [](auto*) {
              }))->Unary(&context, {}, &reply);
          answer_ = status.ok() ? reply.text() : status.error_message();
        }
        batch->Proceed();
      }

     private:
      std::string& answer_;
    };

    ++met_;
    return new Before(answer_);
  }

 private:
  int& met_;
  std::string& answer_;
};

// Counts the calls that it intercepts.
class Counting final : public ClientInterceptorFactoryInterface {
 public:
  explicit Counting(int& met) : met_(met) {}

  // gRPC counts interceptors, not factories, to find the interceptors below one. So a factory must
  // not return null.
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    class Passing final : public Interceptor {
     public:
      void Intercept(InterceptorBatchMethods* batch) override { batch->Proceed(); }
    };

    ++met_;
    return new Passing;
  }

 private:
  int& met_;
};

}  // namespace

TEST_CASE("grpc_channel: the context's authority is the call's, else the endpoint's address",
          "[channel][context]") {
  FunctionServer server([](grpc::ServerContext& context, EchoReply& reply) {
    const auto authority = context.ExperimentalGetAuthority();
    reply.set_text(std::string(authority.data(), authority.size()));
    return grpc::Status::OK;
  });
  ChannelWorld world;
  Setting setting(world, server.address());
  const bool set = GENERATE(false, true);
  grpc::ClientContext context;
  EchoReply reply;
  if (set) context.set_authority("orders.example");
  CHECK(setting.call(context, reply).ok());
  CHECK(reply.text() == (set ? "orders.example" : server.address().str()));
}

TEST_CASE("grpc_channel: a server's deadline is that of the calls it makes for its caller",
          "[channel][context]") {
  EchoServer leaf;
  ChannelWorld world;
  Setting setting(world, leaf.address());
  FunctionServer middle([&](grpc::ServerContext& context, EchoReply& reply) {
    const auto child = grpc::ClientContext::FromServerContext(context);
    return setting.call(*child, reply);
  });
  const auto stub = Echo::NewStub(
      grpc::CreateChannel(middle.address().str(), grpc::InsecureChannelCredentials()));
  const bool limited = GENERATE(false, true);
  grpc::ClientContext context;
  EchoReply reply;
  if (limited) context.set_deadline(std::chrono::system_clock::now() + 60s);
  CHECK(stub->Unary(&context, {}, &reply).ok());
  CHECK(reply.saw() == (limited ? "deadline" : "no deadline"));
}

TEST_CASE("grpc_channel: a deadline may be by any of gRPC's clocks, and is one for all attempts",
          "[channel][context][A31-26][A44]") {
  using std::chrono::minutes;
  const auto route = GENERATE(values<std::optional<Duration>>({std::nullopt, 5min, 1h}));
  const auto clock = GENERATE(GPR_CLOCK_REALTIME, GPR_CLOCK_MONOTONIC, GPR_TIMESPAN);
  CAPTURE(clock);
  std::atomic<int> calls = 0;
  FunctionServer server([&](grpc::ServerContext& context, EchoReply& reply) {
    if (calls++ == 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
    const auto left = context.deadline() - std::chrono::system_clock::now();
    reply.set_saw(std::to_string(std::chrono::round<minutes>(left).count()));
    return grpc::Status::OK;
  });
  ChannelWorld world;
  world.timeout = route;
  world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 2, 1ms, 1ms});
  Setting setting(world, server.address());
  const gpr_timespec from = clock == GPR_TIMESPAN ? gpr_time_0(GPR_TIMESPAN)
                                                  : gpr_now(static_cast<gpr_clock_type>(clock));
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(from, gpr_time_from_minutes(10, GPR_TIMESPAN)));
  EchoReply reply;
  CHECK(setting.call(context, reply).ok());
  CHECK(reply.saw() == (route == Duration(5min) ? "5" : "10"));
  // A step of the wall clock, while the call waits or between its attempts, moves no deadline.
  CHECK(context.raw_deadline().clock_type == GPR_CLOCK_MONOTONIC);
}

namespace {

// Sets a deadline by the wall clock when a call's interceptors are made. A program may do so to
// give each call a deadline. Takes no part in the call.
class LateDeadline final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* info) override {
    info->client_context()->set_deadline(std::chrono::system_clock::now() + 10min);
    return nullptr;
  }
};

}  // namespace

// gRPC itself ends the process if it is given two deadlines by different clocks to compare.
TEST_CASE(
    "grpc_channel: an interceptor may set a deadline by another clock than the route's timeout",
    "[channel][context][A31-26]") {
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<LateDeadline>());
  ChannelWorld world(std::move(interceptors));
  EchoServer server;
  world.timeout = 5min;
  const auto connection = world.connect(server.address());
  const LatePublisher later(world, [&] { world.publish_ready({connection}); });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, {}, &reply).ok());
  CHECK(reply.port() == server.service().port);
}

TEST_CASE("grpc_channel: a call's credentials go with it over TLS", "[channel][context][A29]") {
  grpc::SslServerCredentialsOptions server_options;
  server_options.pem_key_cert_pairs = {{kLocalhostKey, kLocalhostCertificate}};
  FunctionServer server(
      [](grpc::ServerContext& context, EchoReply& reply) {
        reply.set_text(seen_by(context));
        return grpc::Status::OK;
      },
      grpc::SslServerCredentials(server_options));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = kLocalhostCertificate;
  ChannelWorld world({}, grpc::SslCredentials(options));
  Setting setting(world, server.address());
  grpc::ClientContext context;
  EchoReply reply;
  context.set_credentials(grpc::MetadataCredentialsFromPlugin(std::make_unique<Token>()));
  const auto status = setting.call(context, reply);
  INFO(status.error_message());
  CHECK(status.ok());
  CHECK(reply.text() == "no deadline x-token=76616c6964");
}

TEST_CASE("grpc_channel: codes that only servers may send come from servers alone",
          "[channel][context][A54]") {
  grpc::SslServerCredentialsOptions server_options;
  server_options.pem_key_cert_pairs.push_back({kLocalhostKey, kLocalhostCertificate});
  grpc::Status answer;
  FunctionServer server([&](grpc::ServerContext&, EchoReply&) { return answer; },
                        grpc::SslServerCredentials(server_options));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = kLocalhostCertificate;
  ChannelWorld world({}, grpc::SslCredentials(options));
  const auto connection = world.connect(server.address());
  const auto code = static_cast<grpc::StatusCode>(GENERATE(range(1, 17)));
  const bool queued = GENERATE(false, true);
  INFO("code " << code << (queued ? ", after it waited" : ""));
  const auto made_with = [&](std::shared_ptr<grpc::CallCredentials> credentials) {
    if (queued) {
      world.publish_queue();
    } else {
      world.publish_ready({connection});
    }
    const LatePublisher later(world, [&] { world.publish_ready({connection}); });
    grpc::ClientContext context;
    EchoReply reply;
    context.set_credentials(credentials);
    return world.stub->Unary(&context, {}, &reply);
  };

  const auto refused =
      made_with(grpc::MetadataCredentialsFromPlugin(std::make_unique<NoToken>(code)));
  INFO(refused.error_message());
  // gRPC reports UNAVAILABLE whatever the plug-in's code is. The call must not be tried for ever,
  // although no transport ever had it.
  CHECK(refused.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(absl::StrContains(refused.error_message(), "no such key"));

  answer = {code, "as it is"};
  const auto sent = made_with(grpc::MetadataCredentialsFromPlugin(std::make_unique<Token>()));
  CHECK(sent.error_code() == code);
  CHECK(sent.error_message() == "as it is");
}

TEST_CASE("grpc_channel: interceptors may call on the channel below them",
          "[channel][context][interceptor]") {
  int above = 0;
  int itself = 0;
  int below = 0;
  std::string answer;
  Factories factories;
  factories.push_back(std::make_unique<Counting>(above));
  factories.push_back(std::make_unique<Preceding>(itself, answer));
  factories.push_back(std::make_unique<Counting>(below));
  EchoServer server;
  ChannelWorld world(std::move(factories));
  const auto connection = world.connect(server.address());
  world.publish_ready({connection});
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, {}, &reply).ok());
  CHECK(answer.empty());
  CHECK(server.service().calls == 2);
  CHECK(above == 1);
  CHECK(itself == 1);
  CHECK(below == 2);
  world.wait_for_no_uses();
}

}  // namespace signalbox::test
