// SPDX-License-Identifier: Apache-2.0
//
// A call that a server refuses unseen is picked again once, with or without a retry policy (A6,
// transparent retries). Calls that a server may have processed are not. Servers also shut down
// while streams are started; no stream fails, except with a status of the server's own
// (kServersOwn).
#include <atomic>
#include <functional>
#include <future>
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

struct Refusal {
  std::string name;
  Turns turns;
};

/// Makes a call that its first server refuses with `turns`. Returns whether it was picked again
/// transparently. Checks that it succeeded then, or by its retry policy, or that no server saw it.
bool is_picked_again(const Way& way, const Turns& turns, bool has_policy) {
  TalkingSocket refusing(turns);
  EchoServer living;
  ChannelWorld world;
  // A call that no server processed is picked again with a retry policy and without one.
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
  const bool is_again = world.counts->repicked() == 1;
  const bool is_retry = !is_again && has_policy;
  if (is_again) CHECK(ours.text(Agreement::kAll) == expected.text(Agreement::kAll));
  const auto code = is_again || is_retry ? grpc::StatusCode::OK : grpc::StatusCode::UNAVAILABLE;
  CHECK(ours.status.error_code() == code);
  CHECK(living.service().calls == (is_again || is_retry ? 1 : 0));
  CHECK(living.service().previous_attempts == (is_retry ? 1 : 0));
  CHECK(world.stats->retries(RetryResult::kRetried) == (is_retry ? 1 : 0));
  world.wait_for_no_uses();
  world.publish(nullptr);
  return is_again;
}

}  // namespace

TEST_CASE("going away: a call that its server refused unseen is picked again",
          "[channel][repick][A6]") {
  const Refusal refusal =
      GENERATE(Refusal{"GOAWAY, then the end", {kSettings, {"one", goaway(0)}}},
               Refusal{"GOAWAY, then silence", {kSettings, {"one", goaway(0)}, kSilence}},
               Refusal{"REFUSED_STREAM",
                       {kSettings, {"one", rst_stream(Http2Error::kRefusedStream)}, kSilence}});
  const bool has_policy = GENERATE(false, true);
  const bool is_goaway = absl::StartsWith(refusal.name, "GOAWAY");
  for (const Way& way : ways()) {
    CAPTURE(way.name, refusal.name, has_policy);
    const bool is_stream = absl::StrContains(way.name, "streaming");
    // If a stream is still writing when a GOAWAY comes, gRPC cancels the call, and does not tell
    // that the GOAWAY excluded it. Such a stream is not picked again, and another one is made.
    const int most = is_stream && is_goaway ? 20 : 1;
    bool is_again = false;
    for (int made = 0; made < most && !is_again; ++made)
      is_again = is_picked_again(way, refusal.turns, has_policy);
    CHECK(is_again);
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
  };

  const int unavailable = grpc::StatusCode::UNAVAILABLE;
  const End end = GENERATE_COPY(
      End{"GOAWAY that includes the call, then the end", {kSettings, {"one", goaway(1)}}},
      End{"the end", {kSettings, {"one", ""}}});
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
    // It is a race whether gRPC reports the GOAWAY or the end of the connection.
    const std::string ours_begins =
        absl::StrCat("xds:///orders: cluster orders: endpoint ", server.address(), ": ");
    CHECK(absl::StartsWith(ours.status.error_message(), ours_begins));
    CHECK(absl::EndsWith(ours.status.error_message(), " (node ID: node-7)"));
    CHECK(living.service().calls == 0);
    CHECK(world.counts->repicked() == 0);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

namespace {

// The message is larger than the first flow-control window of a connection, which a TalkingSocket
// with kSettings never enlarges. So the write never ends. The message is smaller than
// retry_buffer_bytes.
Manner one_large_message(bool is_corked) {
  EchoRequest request = saying("one" + std::string(100'000, 'x'));
  return {.name = is_corked ? "a large message, corked" : "a large message",
          .requests = {std::move(request)},
          .prepare = nullptr,
          .corked = is_corked};
}

Manner one_message() {
  return {.name = "a message", .requests = {saying("one")}, .prepare = nullptr};
}

}  // namespace

// gRPC cancels the call because its write fails, and then no longer names the call's transport.
TEST_CASE("going away: a call that is refused while it is being written is picked again",
          "[channel][repick][A6]") {
  const bool is_corked = GENERATE(false, true);
  const Manner manner = one_large_message(is_corked);
  for (const Way& way : ways()) {
    CAPTURE(way.name, manner.name);
    TalkingSocket refusing(
        Turns{kSettings, {"one", rst_stream(Http2Error::kRefusedStream)}, kSilence});
    EchoServer living;
    ChannelWorld world;
    const auto to_refusing = world.connect(Address(refusing.address()));
    const auto to_living = world.connect(living.address());
    std::atomic<std::size_t> asked{0};
    world.publish(
        in_turn({answer(Complete{to_refusing.get()}), answer(Complete{to_living.get()})}, asked));
    const Transcript ours = converse(way, manner, world.channel, living.service());
    CHECK(ours.status.error_message().empty());
    CHECK(living.service().calls == 1);
    CHECK(world.counts->repicked() == 1);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("going away: a call of which a server has a part is sent once", "[channel][repick][A6]") {
  struct End {
    std::string name;
    std::string said;
    bool resets = false;
    bool is_like_unsent = false;  ///< gRPC uses the same error text for a call that it never sent.
  };

  const End end = GENERATE(
      End{"GOAWAY that includes the call, then the end", goaway(1)},
      End{"GOAWAY that includes the call, then a reset", goaway(1), true},
      End{"GOAWAY that includes the call, then no HTTP/2", goaway(1) + bad_frame(), false, true},
      End{"the end", ""},
      End{"a reset", "", true},
      End{"CANCEL", rst_stream(Http2Error::kCancel)},
      End{"CANCEL, then a reset", rst_stream(Http2Error::kCancel), true});
  const bool is_corked = GENERATE(false, true);
  const Manner manner = one_large_message(is_corked);
  for (const Way& way : ways()) {
    CAPTURE(way.name, end.name, manner.name);
    TalkingSocket server(Turns{kSettings, {"one", end.said}});
    if (end.resets) server.reset_after();
    EchoServer living;
    ChannelWorld world;
    const auto to_server = world.connect(Address(server.address()));
    const auto to_living = world.connect(living.address());
    std::atomic<std::size_t> asked{0};
    world.publish(
        in_turn({answer(Complete{to_server.get()}), answer(Complete{to_living.get()})}, asked));
    const Transcript ours = converse(way, manner, world.channel, living.service());
    // In unary and server-streaming calls, the server's handler begins when the whole message has
    // come, which never happened here. So such calls may be picked again.
    const bool needs_message =
        absl::StrContains(way.name, "server streaming") || absl::StrContains(way.name, "unary");
    if (!end.is_like_unsent || !needs_message) {
      CHECK(ours.status.error_code() != grpc::StatusCode::OK);
      CHECK(living.service().calls == 0);
      CHECK(world.counts->repicked() == 0);
    }
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

TEST_CASE("going away: a call that is made again is not made a third time when a server has a part",
          "[channel][repick][A6]") {
  const Manner manner{.name = "two messages, which fit together into no first window",
                      .requests = {saying("one" + std::string(60'000, 'x')),
                                   saying("two" + std::string(60'000, 'x'))},
                      .prepare = nullptr};
  for (const Way& way : ways()) {
    if (!absl::StrContains(way.name, "client streaming")) continue;
    CAPTURE(way.name);
    TalkingSocket refusing(Turns{
        {"", http2_wide_settings()}, {"two", rst_stream(Http2Error::kRefusedStream)}, kSilence});
    TalkingSocket breaking(Turns{kSettings, {"one", goaway(1) + bad_frame()}});
    EchoServer living;
    ChannelWorld world;
    const auto to_refusing = world.connect(Address(refusing.address()));
    const auto to_breaking = world.connect(Address(breaking.address()));
    const auto to_living = world.connect(living.address());
    std::atomic<std::size_t> asked{0};
    world.publish(in_turn({answer(Complete{to_refusing.get()}),
                           answer(Complete{to_breaking.get()}),
                           answer(Complete{to_living.get()})},
                          asked));
    const Transcript ours = converse(way, manner, world.channel, living.service());
    CHECK(ours.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(living.service().calls == 0);
    CHECK(world.counts->repicked() == 1);
    world.wait_for_no_uses();
    world.publish(nullptr);
  }
}

// The server's statuses have the error texts that signalbox or gRPC uses for calls that no server
// has, and similar texts. They must not cause another attempt.
TEST_CASE("going away: no words of a server's own status have its call made again",
          "[channel][repick][A6]") {
  struct Status {
    grpc::StatusCode code;
    std::string words;
  };

  const Status said =
      GENERATE(Status{grpc::StatusCode::UNAVAILABLE, "GOAWAY received"},
               Status{grpc::StatusCode::UNAVAILABLE, "Transport closed"},
               Status{grpc::StatusCode::UNAVAILABLE, "Received RST_STREAM with error code 7"},
               Status{grpc::StatusCode::UNAVAILABLE, "grpc_message:\"GOAWAY received\""},
               Status{grpc::StatusCode::UNAVAILABLE, "\", grpc_message:\"GOAWAY received\""},
               Status{grpc::StatusCode::UNAVAILABLE, "Socket closed"},
               Status{grpc::StatusCode::UNAVAILABLE, "failed to connect to all addresses"},
               Status{grpc::StatusCode::UNAVAILABLE, "CANCELLED"},
               Status{grpc::StatusCode::UNAVAILABLE, ""},
               Status{grpc::StatusCode::CANCELLED, "CANCELLED"},
               Status{grpc::StatusCode::CANCELLED, "GOAWAY received"});
  // A large message is still being written when the status comes: gRPC cancels the call.
  for (const Manner& manner : {one_message(), one_large_message(true)}) {
    for (const Way& way : ways()) {
      CAPTURE(way.name, said.code, said.words, manner.name);
      TalkingSocket server(
          Turns{kSettings, {"one", trailers_only(said.code, said.words)}, kSilence});
      EchoServer living;
      ChannelWorld world;
      const auto to_server = world.connect(Address(server.address()));
      const auto to_living = world.connect(living.address());
      std::atomic<std::size_t> asked{0};
      world.publish(
          in_turn({answer(Complete{to_server.get()}), answer(Complete{to_living.get()})}, asked));
      const Transcript ours = converse(way, manner, world.channel, living.service());
      CHECK(ours.status.error_code() == said.code);
      CHECK(ours.status.error_message() == said.words);
      CHECK(living.service().calls == 0);
      CHECK(world.counts->repicked() == 0);
      world.wait_for_no_uses();
      world.publish(nullptr);
    }
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

/// The first batch of operations of a stream: headers alone, or all that the stream sends.
enum class Beginning { kHeaders, kAll };

/// Starts streams in a loop on four threads; each stream must get two replies and an end.
class Streams {
 public:
  explicit Streams(Echo::Stub& stub, Beginning beginning = Beginning::kHeaders)
      : beginning_(beginning) {
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

  /// Waits until `streams` more streams have ended. Also returns when `is_hopeless` returns true:
  /// all streams may then wait for a new connection, so none would end.
  void wait_for_more(
      int streams, const std::function<bool()>& is_hopeless = [] { return false; }) const {
    const int enough = done_ + streams;
    const auto limit = std::chrono::steady_clock::now() + 60s;
    bool is_over = false;
    while (!is_over && std::chrono::steady_clock::now() < limit) {
      is_over = done_ >= enough || is_hopeless();
      std::this_thread::yield();
    }
    REQUIRE(is_over);
  }

  /// The statuses of streams that failed or got fewer than two replies.
  std::multiset<std::string> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  void run(Echo::Stub& stub) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    int replies = 0;
    const grpc::Status status = beginning_ == Beginning::kAll ? expand(stub, context, replies)
                                                              : chat(stub, context, replies);
    ++done_;
    if (status.ok() && replies == 2) return;
    const std::lock_guard lock(mutex_);
    failures_.insert(
        absl::StrCat(static_cast<int>(status.error_code()), " ", status.error_message()));
  }

  static grpc::Status chat(Echo::Stub& stub, grpc::ClientContext& context, int& replies) {
    EchoReply reply;
    const auto stream = stub.Chat(&context);
    while (replies < 2 && stream->Write(saying("x")) && stream->Read(&reply))
      ++replies;
    stream->WritesDone();
    return stream->Finish();
  }

  static grpc::Status expand(Echo::Stub& stub, grpc::ClientContext& context, int& replies) {
    EchoRequest request = saying("x");
    request.set_times(2);
    EchoReply reply;
    const auto stream = stub.Expand(&context, request);
    while (stream->Read(&reply))
      ++replies;
    return stream->Finish();
  }

  const Beginning beginning_;
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

// The status that a C-core server gives to streams that come between its Shutdown() and its GOAWAY.
// A handler may return the same status, so such a stream is not picked again. gRPC's own channel
// behaves alike (decision 110).
constexpr char kServersOwn[] = "1 CANCELLED";

// To be run by hand, for comparison with the next test.
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
  const auto beginning = GENERATE(Beginning::kHeaders, Beginning::kAll);
  CAPTURE(static_cast<int>(beginning));
  EchoServer living;
  ChannelWorld world;
  const auto alive = world.connect(living.address());
  world.publish_ready({alive});
  Streams streams(*world.stub, beginning);
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
  const auto beginning = GENERATE(Beginning::kHeaders, Beginning::kAll);
  CAPTURE(static_cast<int>(beginning));
  EchoServer server(0, [](grpc::ServerBuilder& builder) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 30);
  });
  ChannelWorld world;
  ConnectionPtr connection;
  const auto renew = [&] {
    // gRPC may learn of the connection's end before the connector does. Until the connector knows,
    // it returns the ended connection.
    do {
      connection = world.connect(server.address());
    } while (!is_ready(connection));
    world.publish_ready({connection});
  };
  renew();
  Streams streams(*world.stub, beginning);
  for (int round = 0; round < 20; ++round) {
    wait_until_it_is_going(connection);
    renew();
    streams.wait_for_more(1, [&] { return !is_ready(connection); });
  }
  // The last streams may lose their connection, too.
  const auto ended = std::async(std::launch::async, [&] { streams.end(); });
  while (ended.wait_for(1ms) == std::future_status::timeout) {
    if (!is_ready(connection)) renew();
  }
  CHECK(streams.failures() == std::multiset<std::string>());
  world.wait_for_no_uses();
}

}  // namespace signalbox::test
