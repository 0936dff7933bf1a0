// SPDX-License-Identifier: Apache-2.0
//
// Calls of every kind with a retry policy on their route, through every API, as the server, the
// application and the counters see them.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

#include "tests/e2e/conversation.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/retry_world.hpp"

namespace signalbox::test::grpc_channel_stream_retry_test {
namespace {

EchoRequest saying(const std::string& text) {
  EchoRequest request;
  request.set_text(text);
  request.set_times(3);
  return request;
}

Manner three_messages(bool corked) {
  return {.name = corked ? "corked" : "plain",
          .requests = {saying("one"), saying("two"), saying("three")},
          .prepare =
              [corked](grpc::ClientContext& context) {
                context.set_initial_metadata_corked(corked);
                context.AddMetadata("x-tenant", "blue");
              },
          .corked = corked};
}

// Makes the call over gRPC's own channel, to the server of `world`.
Transcript converse_plainly(const Way& way, const Manner& manner, RetryWorld& world) {
  const auto channel = grpc::CreateChannel("ipv4:" + world.server.address().str(),
                                           grpc::InsecureChannelCredentials());
  return converse(way, manner, channel, world.server.service());
}

TEST_CASE("retried_call, streams: is made again until it succeeds, and only its end is seen",
          "[channel][retry][A44][A6]") {
  for (const Way& way : ways()) {
    for (const bool corked : {false, true}) {
      for (const int reads : {0, 1}) {
        const Manner manner = three_messages(corked);
        INFO(way.name << ", " << manner.name << ", failing after " << reads << " messages");
        RetryWorld world(rules_of(3));
        auto& service = world.server.service();
        const Transcript plain = converse_plainly(way, manner, world);
        service.calls = 0;
        service.failing.reads = reads;
        service.failing.times = 2;
        const Transcript ours = converse(way, manner, world.channel, service);
        CHECK(ours.text(Agreement::kAll) == plain.text(Agreement::kAll));
        CHECK(service.calls == 3);
        CHECK(service.previous_attempts == 2);
        CHECK(world.stats->started() == 3);
        CHECK(world.stats->completed(grpc::StatusCode::UNAVAILABLE) == 2);
        CHECK(world.stats->completed(grpc::StatusCode::OK) == 1);
        CHECK(world.stats->retries(RetryResult::kRetried) == 2);
        CHECK(world.counts->repicked() == 0);
        CHECK(world.counts->queued() == 0);
      }
    }
  }
}

// A proxy may copy received metadata into its own calls, also grpc-previous-rpc-attempts.
TEST_CASE("retried_call, streams: the server hears how often it was tried, from nobody else",
          "[channel][retry][A6]") {
  Manner manner = three_messages(/*corked=*/false);
  manner.prepare = [](grpc::ClientContext& context) {
    context.AddMetadata("grpc-previous-rpc-attempts", "7");
  };
  for (const Way& way : ways()) {
    INFO(way.name);
    RetryWorld world(rules_of(3));
    auto& service = world.server.service();
    service.failing.times = 1;
    CHECK(converse(way, manner, world.channel, service).status.ok());
    CHECK(service.calls == 2);
    CHECK(service.previous_attempts == 1);
  }
}

TEST_CASE("retried_call, streams: ends as its last attempt does", "[channel][retry][A44][A6]") {
  const Manner manner = three_messages(/*corked=*/false);
  for (const Way& way : ways()) {
    for (const int reads : {0, 1}) {
      INFO(way.name << ", failing after " << reads << " messages");
      RetryWorld world(rules_of(3));
      auto& service = world.server.service();
      service.failing.reads = reads;
      service.failing.times = 9;
      const Transcript ours = converse(way, manner, world.channel, service);
      CHECK(ours.status.error_code() == grpc::StatusCode::UNAVAILABLE);
      CHECK(ours.status.error_message() == "as asked");
      CHECK(ours.status.error_details() == "in detail");
      CHECK(ours.trailing == " attempt=32 grpc-status-details-bin=696e2064657461696c");
      CHECK(ours.initial.empty());
      CHECK(ours.replies.empty());
      CHECK(service.calls == 3);
      CHECK(world.stats->completed(grpc::StatusCode::UNAVAILABLE) == 3);
      CHECK(world.stats->retries(RetryResult::kRetried) == 2);
      CHECK(world.stats->retries(RetryResult::kExhausted) == 1);
    }
  }
}

TEST_CASE("retried_call, streams: a server that dies amid its headers has begun to answer",
          "[channel][retry][A44][A6]") {
  const bool has_policy = GENERATE(true, false);
  for (const Way& way : ways()) {
    INFO(way.name << (has_policy ? ", with a policy" : ", without"));
    TalkingSocket dying(cut_amid_headers("one", {{"who", "me"}}));
    EchoServer spare;
    ChannelWorld world;
    if (has_policy) world.retry = rules_of(3);
    const auto to_dying = world.connect(Address(dying.address()));
    const auto to_spare = world.connect(spare.address());
    world.publish_ready({to_dying, to_spare});
    const Transcript ours = converse(way, three_messages(false), world.channel, spare.service());
    // If a write fails, the attempt ends without its headers being read, so the call can be
    // retried.
    const bool may_write = !absl::StrContains(way.name, "unary");
    const bool is_made_again = world.stats->retries(RetryResult::kRetried) == 1;
    if (is_made_again) CHECK((has_policy && may_write));
    CHECK(ours.status.error_code() ==
          (is_made_again ? grpc::StatusCode::OK : grpc::StatusCode::UNAVAILABLE));
    CHECK(world.stats->completed(grpc::StatusCode::UNAVAILABLE) == 1);
    CHECK(world.stats->retries(RetryResult::kCommitted) == (has_policy && !is_made_again ? 1 : 0));
    CHECK(spare.service().calls == (is_made_again ? 1 : 0));
    world.wait_for_no_uses();
  }
}

// After a failed write gRPC cancels the call and reports no peer, as for a call that was never
// sent.
TEST_CASE("retried_call, streams: those that the server had some of are no unsent calls",
          "[channel][retry][A6][race]") {
  for (int round = 0; round < 20; ++round) {
    TalkingSocket dying({{"", http2_settings()}, {"one", ""}});
    dying.reset_after();
    ChannelWorld world;
    world.retry = lb::RetryRules({{absl::StatusCode::kResourceExhausted}, 3, 1ms, 4ms});
    const auto connection = world.connect(Address(dying.address()));
    world.publish_ready({connection});
    std::atomic<int> begun = 0;
    std::atomic<int> failed = 0;
    std::vector<std::thread> callers;
    callers.reserve(8);
    for (int thread = 0; thread < 8; ++thread) {
      callers.emplace_back([&] {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + 60s);
        EchoReply reply;
        const auto writer = world.stub->Collect(&context, &reply);
        ++begun;
        while (begun < 8)
          std::this_thread::yield();
        for (int i = 0; i < 1'000 && writer->Write(saying("one")); ++i) {
        }
        if (writer->Finish().error_code() == grpc::StatusCode::UNAVAILABLE) ++failed;
      });
    }
    // If a call is mistaken for one that was never sent, it is picked again and waits. This
    // publication then ends it with another status.
    const LatePublisher mistaken(world, [&] { world.publish_failure(absl::AbortedError("")); });
    for (std::thread& caller : callers)
      caller.join();
    CHECK(failed == 8);
    CHECK(world.counts->repicked() == 0);
  }
}

TEST_CASE("retried_call, streams: calls that are not made again", "[channel][retry][A44][A6]") {
  struct Row {
    std::string why;
    std::function<void(EchoService&, Manner&)> arrange;
    std::optional<RetryResult> counted;
    bool is_throttled = false;
  };

  const auto failing = [](grpc::StatusCode code, std::string pushback) {
    return [code, pushback = std::move(pushback)](EchoService& service, Manner&) {
      service.failing.times = 1;
      service.failing.status = code;
      service.failing.pushback = pushback;
    };
  };
  const auto unavailable = grpc::StatusCode::UNAVAILABLE;
  const std::vector<Row> rows{
      {"the code is none of the policy's", failing(grpc::StatusCode::INTERNAL, ""), {}},
      {"the server wants none", failing(unavailable, "-1"), RetryResult::kPushedBack},
      {"the server wants what nobody can read",
       failing(unavailable, "soon"),
       RetryResult::kPushedBack},
      {"too many calls fail", failing(unavailable, ""), RetryResult::kThrottled, true},
      {"the deadline comes first", failing(unavailable, kForever), RetryResult::kTooLate},
      {"the server has answered",
       [](EchoService&, Manner& manner) {
         for (EchoRequest& request : manner.requests)
           request.set_status(grpc::StatusCode::UNAVAILABLE);
       },
       RetryResult::kCommitted},
      {"the first message is not kept",
       [](EchoService& service, Manner& manner) {
         service.failing.times = 1;
         service.failing.reads = 1;
         manner.requests.front().set_text(std::string(std::size_t{256} << 10U, 'x'));
       },
       RetryResult::kTooLarge},
  };
  for (const Row& row : rows) {
    for (const Way& way : ways()) {
      INFO(row.why << ", " << way.name);
      auto throttle = row.is_throttled ? std::make_shared<lb::RetryThrottle>(1, 1) : nullptr;
      RetryWorld world(rules_of(5), std::move(throttle));
      auto& service = world.server.service();
      Manner manner = three_messages(/*corked=*/false);
      manner.prepare = [](grpc::ClientContext& context) {
        context.set_deadline(std::chrono::system_clock::now() + 60s);
      };
      row.arrange(service, manner);
      const Transcript plain = converse_plainly(way, manner, world);
      service.calls = 0;
      service.failing.times = service.failed.load();
      const Transcript ours = converse(way, manner, world.channel, service);
      CHECK(ours.text(Agreement::kAll) == plain.text(Agreement::kAll));
      CHECK_FALSE(ours.status.ok());
      CHECK(service.calls == 1);
      for (std::size_t i = 0; i < kRetryResults; ++i) {
        const auto result = static_cast<RetryResult>(i);
        INFO("retry result " << i);
        CHECK(world.stats->retries(result) == (row.counted == result ? 1 : 0));
      }
    }
  }
}

TEST_CASE("retried_call, streams: all messages together have to be within the limit",
          "[channel][retry][A6]") {
  const int messages = GENERATE(2, 3);
  RetryWorld world(rules_of(2));
  auto& service = world.server.service();
  service.failing.times = 1;
  service.failing.reads = messages;
  EchoRequest request;
  constexpr std::size_t kHalf = std::size_t{128} << 10U;  // Half of retry_buffer_bytes.
  request.set_text(std::string(kHalf - 64, 'x'));
  request.mutable_text()->append(kHalf - request.ByteSizeLong(), 'x');
  EchoReply reply;
  grpc::ClientContext context;
  const auto writer = world.stub->Collect(&context, &reply);
  for (int i = 0; i < messages; ++i)
    CHECK(writer->Write(request));
  writer->WritesDone();
  CHECK(writer->Finish().ok() == (messages == 2));
  if (messages == 2) CHECK(reply.text().size() == 2 * request.text().size());
  CHECK(world.stats->retries(RetryResult::kTooLarge) == (messages == 2 ? 0 : 1));
}

TEST_CASE("retried_call, streams: the server says when", "[channel][retry][A6]") {
  for (const Way& way : ways()) {
    INFO(way.name);
    RetryWorld world(rules_of(2, /*base=*/1h, /*most=*/1h));
    auto& service = world.server.service();
    service.failing.times = 1;
    service.failing.pushback = "1";
    const Manner manner = three_messages(/*corked=*/false);
    CHECK(converse(way, manner, world.channel, service).status.ok());
    CHECK(service.calls == 2);
  }
}

// The server fails the call while the application writes. No other operation of the call runs that
// could report the failure.
TEST_CASE("retried_call, streams: no message is lost that is written to a call that has ended",
          "[channel][retry][A6]") {
  const bool is_chat = GENERATE(false, true);
  RetryWorld world(rules_of(3));
  auto& service = world.server.service();
  service.failing.times = 2;
  EchoRequest request;
  request.set_text("x");
  EchoReply reply;
  grpc::ClientContext context;
  int written = 0;
  const auto limit = std::chrono::steady_clock::now() + 20s;
  const auto write_until_made_again = [&](auto& writer) {
    while (service.calls < 3 && std::chrono::steady_clock::now() < limit) {
      REQUIRE(writer.Write(request));
      ++written;
    }
  };
  if (is_chat) {
    const auto stream = world.stub->Chat(&context);
    write_until_made_again(*stream);
    CHECK(stream->WritesDone());
    int read = 0;
    while (stream->Read(&reply))
      ++read;
    CHECK(stream->Finish().ok());
    CHECK(read == written);
  } else {
    const auto writer = world.stub->Collect(&context, &reply);
    write_until_made_again(*writer);
    CHECK(writer->WritesDone());
    CHECK(writer->Finish().ok());
    CHECK(reply.text() == std::string(static_cast<std::size_t>(written), 'x'));
  }
  CHECK(service.calls == 3);
}

TEST_CASE("retried_call, streams: a write that fails is no reason where the server has answered",
          "[channel][retry][A6]") {
  RetryWorld world(rules_of(3));
  auto& service = world.server.service();
  service.failing.times = 1;
  service.failing.is_answered = true;
  grpc::ClientContext context;
  CHECK(write_until_lost(*world.stub, context) == grpc::StatusCode::UNAVAILABLE);
  CHECK(context.GetServerTrailingMetadata().count("attempt") == 1);
  CHECK(service.calls == 1);
  CHECK(world.stats->retries(RetryResult::kCommitted) +
            world.stats->retries(RetryResult::kTooLarge) ==
        1);
}

TEST_CASE("retried_call, streams: goes elsewhere when its server dies", "[channel][retry][A6]") {
  for (const Way& way : ways()) {
    INFO(way.name);
    RetryWorld world(rules_of(2));
    EchoServer other;
    const ConnectionPtr spare = world.connect(other.address());
    std::atomic<int> asked{0};
    world.publish([&](const PickArgs&) {
      PickResult result;
      result.outcome = Complete{asked++ == 0 ? world.connection.get() : spare.get()};
      return result;
    });
    std::thread killer([&] {
      while (world.server.service().calls == 0)
        std::this_thread::yield();
      world.server.stop();
    });
    Manner manner = three_messages(/*corked=*/false);
    world.server.service().failing.times = 1;
    world.server.service().failing.is_held = true;
    const Transcript ours = converse(way, manner, world.channel, other.service());
    killer.join();
    CHECK(ours.status.ok());
    CHECK(other.service().calls == 1);
    CHECK(asked == 2);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("retried_call, streams: can be cancelled, or end with the runtime, while it backs off",
          "[channel][retry][A6]") {
  const bool is_cancelled = GENERATE(true, false);
  for (const Way& way : ways()) {
    INFO(way.name << (is_cancelled ? ", cancelled" : ", shut down"));
    RetryWorld world(rules_of(3));
    auto& service = world.server.service();
    service.failing.times = 9;
    service.failing.pushback = kForever;
    Manner manner = three_messages(/*corked=*/false);
    std::atomic<grpc::ClientContext*> context{nullptr};
    manner.prepare = [&](grpc::ClientContext& made) {
      made.set_deadline(std::chrono::system_clock::time_point::max());
      context = &made;
    };
    std::thread meanwhile([&] {
      world.wait_for_queue(1);
      if (is_cancelled) {
        context.load()->TryCancel();
      } else {
        world.waiting->close();
      }
    });
    manner.talked = [&] { meanwhile.join(); };
    const Transcript ours = converse(way, manner, world.channel, service);
    CHECK(service.calls == 1);
    CHECK(ours.trailing.empty());
    if (is_cancelled) {
      CHECK(ours.status.error_code() == grpc::StatusCode::CANCELLED);
    } else {
      CHECK(ours.status.error_code() == grpc::StatusCode::UNAVAILABLE);
      CHECK(ours.status.error_message().find("has been shut down") != std::string::npos);
    }
  }
}

TEST_CASE("retried_call, streams: a pick that fails is an attempt that failed",
          "[channel][retry][A44]") {
  const bool waits_first = GENERATE(false, true);
  const Manner manner = three_messages(/*corked=*/false);
  for (const Way& way : ways()) {
    INFO(way.name << (waits_first ? ", after it has waited" : ""));
    RetryWorld world(rules_of(3));
    auto& service = world.server.service();
    const Transcript plain = converse_plainly(way, manner, world);
    service.calls = 0;
    const PickResult failed = answer(Fail{absl::UnavailableError("no endpoint")});
    const PickResult complete = answer(Complete{world.connection.get()});
    std::atomic<std::size_t> asked{0};
    const auto turns = in_turn({failed, failed, complete}, asked);
    std::optional<LatePublisher> later;
    if (waits_first) {
      world.publish_queue();
      later.emplace(world, [&] { world.publish(turns); });
    } else {
      world.publish(turns);
    }
    const Transcript ours = converse(way, manner, world.channel, service);
    later.reset();
    CHECK(ours.text(Agreement::kAll) == plain.text(Agreement::kAll));
    CHECK(asked == 3);
    CHECK(service.previous_attempts == 2);
    CHECK(world.stats->started() == 1);
    CHECK(world.stats->retries(RetryResult::kRetried) == 2);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("retried_call: calls of any kind that wait for their next attempt are counted as waiting",
          "[channel][retry][queue]") {
  for (const Way& way : ways()) {
    INFO(way.name);
    RetryWorld world(rules_of(3));
    world.server.service().failing.times = 1;
    std::promise<void> waits;
    std::atomic<int> asked{0};
    world.publish([&](const PickArgs&) {
      const int before = asked++;
      if (before == 0) return answer(Complete{world.connection.get()});
      if (before == 1) waits.set_value();
      return PickResult{};
    });
    std::thread later([&] {
      CHECK(waits.get_future().wait_for(10s) == std::future_status::ready);
      world.publish_ready({world.connection});
    });
    const Transcript transcript =
        converse(way, three_messages(/*corked=*/false), world.channel, world.server.service());
    later.join();
    CHECK(transcript.status.ok());
    CHECK(world.counts->queued() == 1);
  }
}

TEST_CASE("retried_call: goes to an endpoint that it has not tried, where that is wanted",
          "[channel][retry][D13]") {
  const bool elsewhere = GENERATE(true, false);
  const bool has_another = GENERATE(true, false);
  const Manner manner = three_messages(/*corked=*/false);
  for (const Way& way : ways()) {
    INFO(way.name << (elsewhere ? ", elsewhere" : "") << (has_another ? ", if it can" : ""));
    RetryWorld world(rules_of(2), nullptr, {}, elsewhere);
    EchoServer other;
    world.server.service().failing.times = 1;
    const PickResult first = answer(Complete{world.connection.get()});
    const ConnectionPtr spare = world.connect(other.address());
    const PickResult second = answer(Complete{spare.get()});
    std::atomic<int> asked{0};
    world.publish([&](const PickArgs& args) {
      ++asked;
      return has_another && was_tried(args, *world.connection) ? second : first;
    });
    CHECK(converse(way, manner, world.channel, world.server.service()).status.ok());
    const bool went = elsewhere && has_another;
    CHECK(world.server.service().calls == (went ? 1 : 2));
    CHECK(other.service().calls == (went ? 1 : 0));
    CHECK(asked == 2);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("retried_call: a pick is told which endpoints its call has tried, where that is wanted",
          "[channel][retry]") {
  const bool by_option = GENERATE(false, true);
  const bool by_route = GENERATE(false, true);
  RetryPolicy policy{{absl::StatusCode::kUnavailable}, 3, 1ms, 1ms};
  policy.previous_hosts = by_route;
  RetryWorld world(lb::RetryRules(policy), nullptr, {}, by_option);
  std::vector<TriedAddresses> told;
  world.publish([&](const PickArgs& args) {
    told.push_back(args.tried == nullptr ? TriedAddresses{} : *args.tried);
    return answer(Complete{world.connection.get()});
  });
  EchoRequest request;
  request.set_failures(2);
  request.set_status(grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(world.stub->Unary(&context, request, &reply).ok());
  const Address& tried = world.server.address();
  const std::vector<TriedAddresses> all{{}, {tried}, {tried, tried}};
  const std::vector<TriedAddresses> none(3);
  CHECK(told == (by_option || by_route ? all : none));
}

// An interceptor that counts how often gRPC calls it, by hook. `hops`: it proceeds on another
// thread.
class Counting final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  using Points = grpc::experimental::InterceptionHookPoints;
  static constexpr auto kPoints = static_cast<std::size_t>(Points::NUM_INTERCEPTION_HOOKS);
  /// A count for each hook. The last count is the POST_RECV_MESSAGE hooks that had a message.
  using Counts = std::array<std::atomic<int>, kPoints + 1>;

  Counting(Counts& counts, bool hops) : counts_(counts), hops_(hops) {}

  ~Counting() override {
    for (auto& thread : threads_)
      thread.join();
  }

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    class Counter final : public grpc::experimental::Interceptor {
     public:
      explicit Counter(Counting& owner) : owner_(owner) {}

      void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
        for (std::size_t i = 0; i < kPoints; ++i)
          if (batch->QueryInterceptionHookPoint(static_cast<Points>(i))) ++owner_.counts_[i];
        if (batch->QueryInterceptionHookPoint(Points::POST_RECV_MESSAGE) &&
            batch->GetRecvMessage() != nullptr)
          ++owner_.counts_.back();
        owner_.go_on(*batch);
      }

     private:
      Counting& owner_;
    };

    return new Counter(*this);
  }

 private:
  void go_on(grpc::experimental::InterceptorBatchMethods& batch) {
    if (!hops_) return batch.Proceed();
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([&batch] { batch.Proceed(); });
  }

  Counts& counts_;
  const bool hops_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

TEST_CASE(
    "retried_call, streams: interceptors see each hook once, and some keep calls from retries",
    "[channel][retry][interceptor]") {
  const bool hops = GENERATE(false, true);
  const Manner manner = three_messages(/*corked=*/false);
  for (const Way& way : ways()) {
    INFO(way.name << (hops ? ", from another thread" : ""));
    Counting::Counts counts{};
    RetryWorld::Interceptors interceptors;
    interceptors.push_back(std::make_unique<Counting>(counts, hops));
    RetryWorld world(rules_of(3), nullptr, std::move(interceptors));
    auto& service = world.server.service();
    const auto talk = [&](int failures) {
      for (auto& count : counts)
        count = 0;
      service.calls = 0;
      service.failing.times = failures;
      const Transcript transcript = converse(way, manner, world.channel, service);
      std::vector<int> seen;
      for (const auto& count : counts)
        seen.push_back(count);
      return std::pair(transcript.status.ok(), seen);
    };
    const auto plain = talk(0);
    CHECK(plain.first);
    const auto again = talk(2);
    CHECK(again.first == !hops);
    CHECK(service.calls == (hops ? 1 : 3));
    if (!hops) CHECK(again.second == plain.second);
  }
}

TEST_CASE("retried_call, streams: calls that fail, are cancelled and run out of time at once",
          "[channel][retry][race]") {
  RetryWorld world(rules_of(4, 1ms, 2ms));
  auto& service = world.server.service();
  std::vector<std::thread> callers;
  std::atomic<int> ended{0};
  for (std::size_t thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      for (std::size_t i = 0; i < 100; ++i) {
        Manner manner = three_messages(i % 2 == 1);
        std::atomic<grpc::ClientContext*> context{nullptr};
        manner.prepare = [&](grpc::ClientContext& made) {
          if (i % 3 == 0)
            made.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(i % 7));
          context = &made;
        };
        std::thread canceller;
        if (i % 3 == 1) {
          manner.talked = [&] { canceller.join(); };
          canceller = std::thread([&] {
            while (context == nullptr)
              std::this_thread::yield();
            context.load()->TryCancel();
          });
        }
        service.failing.reads = static_cast<int>(i % 2);
        service.failing.times += static_cast<int>(i % 4);
        converse(ways()[(thread * 5 + i) % ways().size()], manner, world.channel, service);
        ++ended;
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(ended == 400);
}

}  // namespace
}  // namespace signalbox::test::grpc_channel_stream_retry_test
