// SPDX-License-Identifier: Apache-2.0
//
// Unary calls with a retry policy on their route, as the server, the application and the counters
// see them.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include <google/protobuf/struct.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "lb/request_limit.hpp"
#include "tests/e2e/retry_world.hpp"

namespace signalbox::test {
namespace {

const auto kApis = {Api::kSync, Api::kAsync, Api::kCallback};

// The number of gRPC's threads that wait for completions of the callback API.
int callback_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == "nexting_thread") ++count;
  }
  return count;
}

TEST_CASE("retried_call: is made again until it succeeds, and only its end is seen",
          "[channel][retry][A44][A6]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  grpc::ClientContext context;
  context.AddMetadata("x-tenant", "blue");
  context.set_deadline(std::chrono::system_clock::now() + 60s);
  EchoReply reply;
  const grpc::Status status = call(*world.stub, api, context, failing(2), reply);
  REQUIRE(status.ok());
  CHECK(reply.text() == "again");
  CHECK(reply.previous_attempts() == 2);
  CHECK(reply.saw() == "deadline x-tenant=626c7565");
  CHECK(world.server.service().calls == 3);
  CHECK(context.GetServerInitialMetadata().count("server") == 1);
  CHECK(context.GetServerTrailingMetadata().count("load") == 1);
  CHECK(context.GetServerTrailingMetadata().count("attempt") == 0);
  CHECK(context.peer() == "ipv4:" + world.server.address().str());
  CHECK(world.stats->started() == 3);
  CHECK(world.stats->completed(grpc::StatusCode::UNAVAILABLE) == 2);
  CHECK(world.stats->completed(grpc::StatusCode::OK) == 1);
  CHECK(world.stats->retries(RetryResult::kRetried) == 2);
  CHECK(world.counts->repicked() == 0);
}

TEST_CASE("retried_call: starts no threads of the callback API for calls of the others",
          "[channel][retry]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync);
  const int failures = GENERATE(0, 2);
  INFO(to_string(api) << ", " << failures << " failures");
  const int before = callback_threads();  // Threads of an earlier test may still be ending.
  RetryWorld world(rules_of(3));
  grpc::ClientContext context;
  EchoReply reply;
  REQUIRE(call(*world.stub, api, context, failing(failures), reply).ok());
  CHECK(callback_threads() <= before);
}

TEST_CASE("retried_call: ends as its last attempt does", "[channel][retry][A44][A6]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  grpc::ClientContext context;
  EchoReply reply;
  const grpc::Status status = call(*world.stub, api, context, failing(9), reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() == "as asked");
  CHECK(status.error_details() == "in detail");
  CHECK(world.server.service().calls == 3);
  const auto& trailers = context.GetServerTrailingMetadata();
  REQUIRE(trailers.count("attempt") == 1);
  CHECK(trailers.find("attempt")->second == "2");
  CHECK(context.GetServerInitialMetadata().empty());
  CHECK(world.stats->retries(RetryResult::kExhausted) == 1);
}

TEST_CASE("retried_call: calls that are not made again", "[channel][retry][A44][A6]") {
  struct Row {
    const char* why;
    EchoRequest request;
    std::optional<RetryResult> counted;
  };

  EchoRequest committed;
  committed.set_status(grpc::StatusCode::UNAVAILABLE);
  EchoRequest large = failing(1);
  large.set_text(std::string(std::size_t{256} << 10U, 'x'));
  const std::vector<Row> rows{
      {"the code is none of the policy's", failing(1, grpc::StatusCode::INTERNAL), {}},
      {"the server wants none", failing_with("-1"), RetryResult::kPushedBack},
      {"the server wants what nobody can read", failing_with("soon"), RetryResult::kPushedBack},
      {"response headers came", committed, RetryResult::kCommitted},
      {"the request is not kept", large, RetryResult::kTooLarge},
      {"the deadline comes first", failing_with(kForever), RetryResult::kTooLate},
  };
  const auto api = GENERATE(values(kApis));
  INFO(to_string(api));
  for (const Row& row : rows) {
    INFO(row.why);
    RetryWorld world(rules_of(5));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    EchoReply reply;
    const grpc::Status status = call(*world.stub, api, context, row.request, reply);
    CHECK(static_cast<int>(status.error_code()) == row.request.status());
    CHECK(status.error_message() == "as asked");
    CHECK(world.server.service().calls == 1);
    for (std::size_t i = 0; i < kRetryResults; ++i) {
      const auto result = static_cast<RetryResult>(i);
      CHECK(world.stats->retries(result) == (row.counted == result ? 1 : 0));
    }
  }
}

TEST_CASE("retried_call: nothing follows a deadline, however long ago it was",
          "[channel][retry][A6][limits]") {
  const auto deadline = GENERATE(gpr_time_0(GPR_CLOCK_REALTIME),
                                 gpr_time_from_seconds(-9'223'372'036, GPR_CLOCK_REALTIME),
                                 gpr_inf_past(GPR_CLOCK_REALTIME),
                                 gpr_inf_past(GPR_CLOCK_MONOTONIC));
  const bool is_picked = GENERATE(true, false);
  CAPTURE(deadline.tv_sec, is_picked);
  RetryWorld world(lb::RetryRules(
      {{absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable}, 3, 1ms, 1ms}));
  if (!is_picked) world.publish_failure(absl::UnavailableError("no endpoint"));
  grpc::ClientContext context;
  context.set_deadline(deadline);
  EchoReply reply;
  const grpc::Status status = world.stub->Unary(&context, {}, &reply);
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(world.stats->retries(RetryResult::kRetried) == 0);
  CHECK(world.server.service().calls == 0);
}

TEST_CASE("retried_call: a request just within the limit is made again", "[channel][retry][A6]") {
  constexpr std::size_t kLimit = std::size_t{256} << 10U;
  const bool is_within = GENERATE(true, false);
  RetryWorld world(rules_of(2));
  EchoRequest request = failing(1);
  request.set_text(std::string(kLimit - 64, 'x'));
  const std::size_t left = kLimit - request.ByteSizeLong();
  request.mutable_text()->append(is_within ? left : left + 1, 'x');
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, request, &reply).ok() == is_within);
  CHECK(reply.text() == (is_within ? request.text() : ""));
}

TEST_CASE("retried_call: the server says when", "[channel][retry][A6]") {
  RetryWorld world(rules_of(2, /*base=*/1h, /*most=*/1h));
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, failing_with("1", /*failures=*/1), &reply).ok());
  CHECK(reply.previous_attempts() == 1);
}

TEST_CASE("retried_call: can be cancelled while it backs off", "[channel][retry][A6]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  grpc::ClientContext context;
  const grpc::Status status =
      world.call_and(api, context, failing_with(kForever), [&] { context.TryCancel(); });
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(world.server.service().calls == 1);
  CHECK(context.GetServerTrailingMetadata().empty());
}

TEST_CASE("retried_call: fails when the runtime ends while it backs off", "[channel][retry]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  grpc::ClientContext context;
  const grpc::Status status =
      world.call_and(api, context, failing_with(kForever), [&] { world.waiting->close(); });
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message().find("has been shut down") != std::string::npos);
  CHECK(world.server.service().calls == 1);
}

TEST_CASE("retried_call: one that waits, and whose runtime ends, is not made again",
          "[channel][queue][retry]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  world.publish_failure(absl::UnavailableError("all endpoints are down"));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const grpc::Status status = world.call_and(api, context, {}, [&] { world.waiting->close(); });
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message().find("all endpoints are down") != std::string::npos);
  CHECK(world.stats->retries(RetryResult::kRetried) == 0);
}

TEST_CASE("retried_call: does not back off when the runtime has ended", "[channel][retry]") {
  RetryWorld world(rules_of(3, /*base=*/1h, /*most=*/1h));
  world.publish([&](const PickArgs&) {
    world.waiting->close();
    PickResult result;
    result.outcome = Complete{world.connection.get()};
    return result;
  });
  grpc::ClientContext context;
  EchoReply reply;
  const grpc::Status status = call(*world.stub, Api::kAsync, context, failing(9), reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() ==
        "xds:///orders: the signalbox runtime has been shut down (node ID: node-7)");
  CHECK(world.server.service().calls == 1);
}

TEST_CASE("retried_call: holds its cluster and nothing else while it backs off",
          "[channel][retry][A31-4][A32]") {
  RetryWorld world(rules_of(3));
  const auto limit = std::make_shared<const lb::RequestLimit>();
  const lb::RequestGate gate(limit, 1, ClusterName("orders"), {});
  world.publish([&](const PickArgs&) {
    PickResult result;
    result.outcome = Complete{world.connection.get()};
    result.trackers.add_gate(gate);
    return result;
  });
  grpc::ClientContext context;
  world.call_and(Api::kSync, context, failing_with(kForever), [&] {
    CHECK(limit->in_flight() == 0);
    CHECK_FALSE(world.connection->in_use());
    CHECK(world.cluster->in_use());
    context.TryCancel();
  });
  world.wait_for_no_uses();
  world.publish(nullptr);  // Destroys the snapshot, and with it the gate.
}

TEST_CASE("retried_call: a pick that fails is an attempt that failed; a drop ends the call",
          "[channel][retry][A44][A32]") {
  const Api api = GENERATE(values(kApis));
  const bool waits_first = GENERATE(false, true);
  INFO(to_string(api) << (waits_first ? ", after it has waited" : ""));
  RetryWorld world(rules_of(3));
  const PickResult failed = answer(Fail{absl::UnavailableError("no endpoint")});
  const PickResult dropped = answer(Drop{absl::UnavailableError("dropped")});
  const PickResult complete = answer(Complete{world.connection.get()});
  std::atomic<std::size_t> asked{0};
  grpc::ClientContext context;
  EchoReply reply;
  const auto call_with = [&](std::vector<PickResult> answers, const EchoRequest& request) {
    if (!waits_first) {
      world.publish(in_turn(std::move(answers), asked));
      return call(*world.stub, api, context, request, reply);
    }
    world.publish_queue();
    LatePublisher later(world, [&] { world.publish(in_turn(std::move(answers), asked)); });
    return call(*world.stub, api, context, request, reply);
  };

  SECTION("until one succeeds") {
    CHECK(call_with({failed, failed, complete}, failing(2)).ok());
    CHECK(asked == 3);
    CHECK(reply.previous_attempts() == 2);
    CHECK(world.stats->started() == 1);
    CHECK(world.stats->completed(grpc::StatusCode::OK) == 1);
    CHECK(world.stats->retries(RetryResult::kRetried) == 2);
  }
  SECTION("until the attempts are used up") {
    const grpc::Status status = call_with({failed}, failing(0));
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(status.error_message() == "xds:///orders: cluster orders: no endpoint (node ID: node-7)");
    CHECK(asked == 3);
    CHECK(world.stats->started() == 0);
  }
  SECTION("a drop at first") {
    CHECK(call_with({dropped, complete}, failing(0)).error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(asked == 1);
  }
  SECTION("a drop of a retry") {
    CHECK(call_with({complete, dropped, complete}, failing(1)).error_message() ==
          "xds:///orders: cluster orders: dropped (node ID: node-7)");
    CHECK(asked == 2);
    CHECK(world.server.service().calls == 1);
  }
  world.wait_for_no_uses();
  world.publish(nullptr);
}

TEST_CASE("retried_call: each attempt draws its endpoint anew", "[channel][retry][A6]") {
  RetryWorld world(rules_of(5));
  std::mutex mutex;
  std::set<std::uint64_t> seeds;
  world.publish([&](const PickArgs& args) {
    const std::lock_guard lock(mutex);
    seeds.insert(args.seed);
    return answer(Complete{world.connection.get()});
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, failing(4), &reply).ok());
  CHECK(seeds.size() == 5);
  world.wait_for_no_uses();
  world.publish(nullptr);
}

TEST_CASE("retried_call: too many failures stop the retries of a target", "[channel][retry][A6]") {
  RetryWorld world(rules_of(2), std::make_shared<lb::RetryThrottle>(4, 1));
  const auto fails = [&](const EchoRequest& request) {
    grpc::ClientContext context;
    EchoReply reply;
    return !world.stub->Unary(&context, request, &reply).ok();
  };
  CHECK_FALSE(fails(failing(1)));  // Retry tokens: 4, 3, 4
  CHECK(fails(failing(9)));        // 4, 3, 2
  CHECK(fails(failing(1)));        // 1
  CHECK(world.stats->retries(RetryResult::kThrottled) == 1);
  CHECK_FALSE(fails(failing(0)));  // 2
  CHECK_FALSE(fails(failing(0)));  // 3
  CHECK_FALSE(fails(failing(0)));  // 4
  CHECK_FALSE(fails(failing(1)));
}

// The number of previous attempts, as the reply in these bytes has it.
int previous_attempts_in(grpc::ByteBuffer& bytes) {
  EchoReply reply;
  REQUIRE(grpc::SerializationTraits<EchoReply>::Deserialize(&bytes, &reply).ok());
  return reply.previous_attempts();
}

TEST_CASE("retried_call: calls through a generic stub are made again, too",
          "[channel][retry][A44]") {
  RetryWorld world(rules_of(3));
  grpc::GenericStub stub(world.channel);
  const std::string bytes = failing(2).SerializeAsString();
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  grpc::Status status;
  SECTION("asynchronous") {
    grpc::CompletionQueue queue;
    const auto reader =
        stub.PrepareUnaryCall(&context, "/signalbox.test.Echo/Unary", request, &queue);
    reader->StartCall();
    reader->Finish(&response, &status, &status);
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    CHECK(tag == &status);
    CHECK_FALSE(queue.Next(&tag, &ok));
  }
  SECTION("with a callback") {
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context,
                   "/signalbox.test.Echo/Unary",
                   grpc::StubOptions(),
                   &request,
                   &response,
                   [&](grpc::Status end) { ended.set_value(std::move(end)); });
    auto end = ended.get_future();
    REQUIRE(end.wait_for(10s) == std::future_status::ready);
    status = end.get();
  }
  REQUIRE(status.ok());
  CHECK(previous_attempts_in(response) == 2);
}

TEST_CASE("retried_call: bytes are made again for whoever calls with them and waits",
          "[channel][retry][A6]") {
  RetryWorld world(rules_of(3));
  const std::string bytes = failing(2).SerializeAsString();
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  const grpc::internal::RpcMethod method("/signalbox.test.Echo/Unary",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
      world.channel.get(), method, &context, request, &response);
  INFO(status.error_message());
  CHECK(status.ok());
  CHECK(previous_attempts_in(response) == 2);
}

// A stub that was built from an older .proto may expect a reply of another type.
TEST_CASE("retried_call: a reply that does not parse is no reply", "[channel][retry][A6]") {
  using google::protobuf::ListValue;
  using google::protobuf::MessageLite;
  RetryWorld world(rules_of(3));
  ListValue reply;
  grpc::ClientContext context;
  const grpc::internal::RpcMethod method("/signalbox.test.Echo/Unary",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall<EchoRequest, ListValue, MessageLite, MessageLite>(
          world.channel.get(), method, &context, failing(1), &reply);
  CHECK(world.server.service().calls == 2);
  CHECK(status.error_code() == grpc::StatusCode::INTERNAL);
  CHECK(status.error_message() == "");
  CHECK(world.stats->completed(grpc::StatusCode::OK) == 1);
}

TEST_CASE("retried_call: calls that fail, are cancelled and run out of time at once",
          "[channel][retry][race]") {
  RetryWorld world(rules_of(4, 1ms, 2ms));
  std::vector<std::thread> callers;
  callers.reserve(4);
  std::atomic<int> ended{0};
  for (int thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      for (int i = 0; i < 100; ++i) {
        grpc::ClientContext context;
        if (i % 3 == 0)
          context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(i % 7));
        std::thread canceller;
        if (i % 3 == 1) canceller = std::thread([&] { context.TryCancel(); });
        EchoReply reply;
        const Api api = kApis.begin()[(thread + i) % 3];
        call(*world.stub, api, context, failing(i % 5), reply);
        if (canceller.joinable()) canceller.join();
        ++ended;
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(ended == 400);
}

}  // namespace
}  // namespace signalbox::test
