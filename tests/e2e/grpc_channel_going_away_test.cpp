// SPDX-License-Identifier: Apache-2.0
//
// Calls that no server has seen are picked again, with or without a retry policy (A6, transparent
// retries); calls that a server may have seen are not. Servers go away under streams, and none
// fails.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/e2e/conversation.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/retry_world.hpp"

namespace signalbox::test {
namespace {

using Turns = std::vector<TalkingSocket::Turn>;

const TalkingSocket::Turn kSettings{"", http2_settings()};
const TalkingSocket::Turn kSilence{"what no client says", ""};

EchoRequest saying(const std::string& text) {
  EchoRequest request;
  request.set_text(text);
  request.set_times(3);
  return request;
}

Manner three_messages() {
  return {.name = "three messages",
          .requests = {saying("one"), saying("two"), saying("three")},
          .prepare = [](grpc::ClientContext& context) { context.AddMetadata("x-tenant", "blue"); }};
}

lb::RetryRules rules_of_nothing() {
  return lb::RetryRules();
}

}  // namespace

TEST_CASE("going away: a call that its server refused unseen is picked again",
          "[channel][repick][A6]") {
  struct Refusal {
    std::string name;
    Turns turns;
  };

  const Refusal refusal =
      GENERATE(Refusal{"GOAWAY, then the end", {kSettings, {"one", goaway(0)}}},
               Refusal{"GOAWAY, then silence", {kSettings, {"one", goaway(0)}, kSilence}},
               Refusal{"REFUSED_STREAM",
                       {kSettings, {"one", rst_stream(Http2Error::kRefusedStream)}, kSilence}});
  const bool has_policy = GENERATE(false, true);
  for (const Way& way : ways()) {
    CAPTURE(way.name, refusal.name, has_policy);
    TalkingSocket refusing(refusal.turns);
    EchoServer living;
    ChannelWorld world;
    // A policy has no part in it.
    world.retry = has_policy ? rules_of(2) : rules_of_nothing();
    const auto to_refusing = world.connect(Address(refusing.address()));
    const auto to_living = world.connect(living.address());
    std::atomic<std::size_t> asked{0};
    world.publish(
        in_turn({answer(Complete{to_refusing.get()}), answer(Complete{to_living.get()})}, asked));
    const auto plain =
        grpc::CreateChannel("ipv4:" + living.address().str(), grpc::InsecureChannelCredentials());
    const Transcript expected = converse(way, three_messages(), plain, living.service());
    living.service().calls = 0;
    const Transcript ours = converse(way, three_messages(), world.channel, living.service());
    CHECK(ours.text(Agreement::kAll) == expected.text(Agreement::kAll));
    CHECK(living.service().calls == 1);
    CHECK(living.service().previous_attempts == 0);
    CHECK(world.counts->repicked() == 1);
    CHECK(world.stats->retries(RetryResult::kRetried) == 0);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("going away: a call that is refused unseen twice ends so", "[channel][repick][A6]") {
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    const Turns turns{kSettings, {"one", rst_stream(Http2Error::kRefusedStream)}, kSilence};
    TalkingSocket first(turns);
    TalkingSocket second(turns);
    EchoServer living;
    ChannelWorld world;
    const auto to_first = world.connect(Address(first.address()));
    const auto to_second = world.connect(Address(second.address()));
    const auto to_living = world.connect(living.address());
    std::atomic<std::size_t> asked{0};
    world.publish(in_turn({answer(Complete{to_first.get()}),
                           answer(Complete{to_second.get()}),
                           answer(Complete{to_living.get()})},
                          asked));
    const Transcript ours = converse(way, three_messages(), world.channel, living.service());
    CHECK(ours.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(ours.status.error_message() ==
          absl::StrCat("xds:///orders: cluster orders: endpoint ",
                       second.address(),
                       ": Received RST_STREAM with error code 7 (node ID: node-7)"));
    CHECK(living.service().calls == 0);
    CHECK(world.counts->repicked() == 1);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("going away: a call that a server may have seen is not picked again",
          "[channel][repick][A6]") {
  struct End {
    std::string name;
    Turns turns;
    std::string told;  ///< Empty: in our form, of which it is a race what the reason is.
  };

  const int unavailable = grpc::StatusCode::UNAVAILABLE;
  const End end = GENERATE_COPY(
      End{"GOAWAY that includes the call, then the end", {kSettings, {"one", goaway(1)}}, ""},
      End{"the end", {kSettings, {"one", ""}}, ""},
      End{"the server's own status, in the words of GOAWAY",
          {kSettings, {"one", trailers_only(unavailable, "GOAWAY received")}, kSilence},
          "GOAWAY received"},
      End{"the server's own status, in the words of REFUSED_STREAM",
          {kSettings,
           {"one", trailers_only(unavailable, "Received RST_STREAM with error code 7")},
           kSilence},
          "Received RST_STREAM with error code 7"});
  for (const Way& way : ways()) {
    CAPTURE(way.name, end.name);
    TalkingSocket server(end.turns);
    EchoServer living;
    ChannelWorld world;
    const auto to_server = world.connect(Address(server.address()));
    const auto to_living = world.connect(living.address());
    std::atomic<std::size_t> asked{0};
    world.publish(
        in_turn({answer(Complete{to_server.get()}), answer(Complete{to_living.get()})}, asked));
    const Transcript ours = converse(way, three_messages(), world.channel, living.service());
    CHECK(ours.status.error_code() == unavailable);
    if (end.told.empty()) {
      const std::string ours_begins =
          absl::StrCat("xds:///orders: cluster orders: endpoint ", server.address(), ": ");
      CHECK(absl::StartsWith(ours.status.error_message(), ours_begins));
      CHECK(absl::EndsWith(ours.status.error_message(), " (node ID: node-7)"));
    } else {
      CHECK(ours.status.error_message() == end.told);
    }
    CHECK(living.service().calls == 0);
    CHECK(world.counts->repicked() == 0);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("going away: a reactor hears of initial metadata as on gRPC's own channel",
          "[channel][parity]") {
  const bool has_policy = GENERATE(false, true);
  const bool is_trailers_only = GENERATE(true, false);
  EchoServer server;
  for (const Way& way : ways()) {
    if (!way.has_reactor) continue;
    CAPTURE(way.name, has_policy, is_trailers_only);
    const auto plain =
        grpc::CreateChannel("ipv4:" + server.address().str(), grpc::InsecureChannelCredentials());
    ChannelWorld world;
    if (has_policy) world.retry = rules_of(2);
    const auto connection = world.connect(server.address());
    world.publish_ready({connection});
    const auto talk = [&](const auto& channel) {
      server.service().failing.status = grpc::StatusCode::FAILED_PRECONDITION;
      server.service().failing.times = is_trailers_only ? 1 : 0;
      return converse(way, three_messages(), channel, server.service());
    };
    const Transcript theirs = talk(plain);
    const Transcript ours = talk(world.channel);
    CHECK(theirs.awaited == !is_trailers_only);
    CHECK(ours.awaited == theirs.awaited);
    CHECK(ours.text(Agreement::kAll) == theirs.text(Agreement::kAll));
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

namespace {

/// Streams without end, of which each has two rounds and an end, on four threads.
class Streams {
 public:
  explicit Streams(Echo::Stub& stub) {
    for (int thread = 0; thread < 4; ++thread)
      threads_.emplace_back([this, &stub] {
        while (!is_ending_)
          run(stub);
      });
  }

  ~Streams() { end(); }

  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  void end() {
    is_ending_ = true;
    for (auto& thread : threads_)
      thread.join();
    threads_.clear();
  }

  /// Returns when that many more have ended.
  void wait_for_more(int streams) const {
    const int enough = done_ + streams;
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (done_ < enough && std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    REQUIRE(done_ >= enough);
  }

  /// How streams failed.
  std::multiset<std::string> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  void run(Echo::Stub& stub) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    EchoReply reply;
    const auto stream = stub.Chat(&context);
    int rounds = 0;
    while (rounds < 2 && stream->Write(saying("x")) && stream->Read(&reply))
      ++rounds;
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    ++done_;
    if (status.ok() && rounds == 2) return;
    const std::lock_guard lock(mutex_);
    failures_.insert(
        absl::StrCat(static_cast<int>(status.error_code()), " ", status.error_message()));
  }

  std::atomic<bool> is_ending_{false};
  std::atomic<int> done_{0};
  mutable std::mutex mutex_;
  std::multiset<std::string> failures_;
  std::vector<std::thread> threads_;
};

bool is_ready(const ConnectionPtr& connection) {
  return static_cast<const actors::GrpcConnection&>(*connection).is_ready();
}

void wait_until_it_is_going(const ConnectionPtr& connection) {
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (is_ready(connection) && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  REQUIRE_FALSE(is_ready(connection));
}

}  // namespace

// A C-core server answers streams that come after Shutdown() and before its GOAWAY with CANCELLED.
// A handler may end so, too: these streams are not made again, on gRPC's own channel neither.
constexpr char kServersOwn[] = "1 CANCELLED";

// To be run by hand, beside the next one.
TEST_CASE("going away: what gRPC's own channel makes of servers that shut down", "[.]") {
  EchoServer living;
  std::multiset<std::string> failures;
  for (int round = 0; round < 20; ++round) {
    EchoServer leaving;
    grpc::ChannelArguments arguments;
    arguments.SetLoadBalancingPolicyName("round_robin");
    const auto channel = grpc::CreateCustomChannel(
        absl::StrCat("ipv4:", leaving.address().str(), ",", living.address().str()),
        grpc::InsecureChannelCredentials(),
        arguments);
    const auto stub = Echo::NewStub(channel);
    Streams streams(*stub);
    streams.wait_for_more(20);
    leaving.leave();
    streams.wait_for_more(20);
    streams.end();
    const auto more = streams.failures();
    failures.insert(more.begin(), more.end());
  }
  for (const std::string& failure : failures)
    WARN(failure);
}

TEST_CASE("going away: servers that shut down under streams fail none", "[channel][A6][race]") {
  EchoServer living;
  ChannelWorld world;
  const auto alive = world.connect(living.address());
  world.publish_ready({alive});
  Streams streams(*world.stub);
  for (int round = 0; round < 20; ++round) {
    EchoServer leaving;
    const auto connection = world.connect(leaving.address());
    world.publish_ready({connection});
    streams.wait_for_more(20);
    std::thread shutdown([&] { leaving.leave(); });
    wait_until_it_is_going(connection);
    world.publish_ready({alive});
    shutdown.join();
    CHECK(leaving.service().calls > 0);
  }
  streams.wait_for_more(20);
  streams.end();
  auto failures = streams.failures();
  failures.erase(kServersOwn);
  CHECK(failures == std::multiset<std::string>());
  world.wait_for_no_uses();
}

TEST_CASE("going away: connections that grow too old under streams fail none",
          "[channel][A6][race]") {
  EchoServer server(0, [](grpc::ServerBuilder& builder) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 30);
  });
  ChannelWorld world;
  auto connection = world.connect(server.address());
  world.publish_ready({connection});
  Streams streams(*world.stub);
  for (int round = 0; round < 20; ++round) {
    wait_until_it_is_going(connection);
    // gRPC may know it sooner than the connector, which would hand out the old connection.
    while (!is_ready(connection))
      connection = world.connect(server.address());
    world.publish_ready({connection});
    streams.wait_for_more(1);
  }
  streams.end();
  CHECK(streams.failures() == std::multiset<std::string>());
  world.wait_for_no_uses();
}

}  // namespace signalbox::test
