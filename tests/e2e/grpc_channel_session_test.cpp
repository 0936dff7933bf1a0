// SPDX-License-Identifier: Apache-2.0
//
// The cookie that a pick sets for its session, in every kind of call: in the headers of the attempt
// that answered, or in the trailers if the attempt had no headers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "signalbox/cookie_jar.hpp"
#include "tests/e2e/channel_world.hpp"
#include "tests/e2e/conversation.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/retry_world.hpp"
#include "tests/e2e/session_filters.hpp"

namespace signalbox::test {
namespace {

std::string cookie_of(const ConnectionPtr& connection) {
  return absl::StrCat(
      "session=", absl::Base64Escape(connection->address().str() + ";orders"), "; HttpOnly");
}

// The text by which a transcript shows this cookie header.
std::string told(const std::string& set_cookie) {
  return " set-cookie=" + absl::BytesToHexString(set_cookie);
}

std::size_t count(const std::string& text, const std::string& part) {
  return std::vector<std::string>(absl::StrSplit(text, part)).size() - 1;
}

// A channel with a session filter on its route; the cookie has no path, so every path matches.
struct SessionWorld : ChannelWorld {
  SessionWorld() { filters = session_chain(""); }

  ~SessionWorld() { wait_for_no_uses(); }

  SessionWorld(const SessionWorld&) = delete;
  SessionWorld& operator=(const SessionWorld&) = delete;

  // `late`: the pick is published while the call waits; else it is ready.
  Transcript talk(const Way& way,
                  const Manner& manner,
                  bool late,
                  const ConnectionPtr& connection) {
    const EchoService unasked;
    publish(late ? nullptr : keeping({connection}));
    const LatePublisher later(*this, [&] {
      if (late) publish(keeping({connection}));
    });
    return converse(way, manner, channel, unasked);
  }
};

// A server with a service of the test's own.
class ServerOf {
 public:
  explicit ServerOf(Echo::Service& service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
  }

  ~ServerOf() { server_->Shutdown(std::chrono::system_clock::now()); }

  ServerOf(const ServerOf&) = delete;
  ServerOf& operator=(const ServerOf&) = delete;

  Address address() const { return Address(absl::StrCat("127.0.0.1:", port_)); }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Implements no method, so it answers each call with a status alone.
using MuteService = Echo::Service;

// Sets cookies of its own, and replies with the received cookies.
class BasketService final : public Echo::Service {
 public:
  grpc::Status Unary(grpc::ServerContext* context, const EchoRequest*, EchoReply* reply) override {
    context->AddInitialMetadata("set-cookie", "basket=7; Path=/signalbox.test.Echo/Unary");
    context->AddInitialMetadata("set-cookie", "without a value");
    context->AddTrailingMetadata("set-cookie", "late=1; Max-Age=3600");
    const auto [begin, end] = context->client_metadata().equal_range("cookie");
    for (auto header = begin; header != end; ++header)
      reply->set_text(reply->text() + "[" +
                      std::string(header->second.data(), header->second.size()) + "]");
    return grpc::Status::OK;
  }
};

Manner saying(const std::string& text, int status = 0) {
  EchoRequest request;
  request.set_text(text);
  request.set_times(2);
  request.set_status(status);
  return {text, {request}, nullptr};
}

}  // namespace

TEST_CASE("sessions: every way to call finds its cookie in the server's headers",
          "[channel][session][A55-16][A55-21][A55-22]") {
  const bool late = GENERATE(false, true);
  const int status = GENERATE(as<int>(), 0, grpc::StatusCode::FAILED_PRECONDITION);
  CAPTURE(late, status);
  EchoServer server;
  SessionWorld world;
  const auto connection = world.connect(server.address());
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    const Transcript transcript = world.talk(way, saying("a", status), late, connection);
    CHECK(transcript.status.error_code() == status);
    CHECK(count(transcript.initial, told(cookie_of(connection))) == 1);
    CHECK(count(transcript.initial, " server=") == 1);
    CHECK(count(transcript.trailing, " set-cookie=") == 0);
  }
}

TEST_CASE("sessions: where a server answers without headers, the cookie is in its trailers",
          "[channel][session][A55-21]") {
  const bool late = GENERATE(false, true);
  CAPTURE(late);
  MuteService service;
  const ServerOf server(service);
  SessionWorld world;
  const auto connection = world.connect(server.address());
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    const Transcript transcript = world.talk(way, saying("a"), late, connection);
    CHECK(transcript.status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
    CHECK(transcript.initial.empty());
    CHECK(count(transcript.trailing, told(cookie_of(connection))) == 1);
  }
}

TEST_CASE("sessions: a call whose server dies amid its headers has its cookie, once",
          "[channel][session][A55-21]") {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const Headers headers =
      GENERATE(Headers{{"who", "me"}}, Headers{{"grpc-accept-encoding", "gzip"}}, Headers{});
  const bool are_seen = !headers.empty() && headers[0].first == "who";
  for (const Way& way : ways()) {
    CAPTURE(way.name, headers.size(), are_seen);
    TalkingSocket server(cut_amid_headers("asked", headers));
    SessionWorld world;
    const auto connection = world.connect(Address(server.address()));
    const Transcript transcript = world.talk(way, saying("asked"), false, connection);
    const std::string cookie = told(cookie_of(connection));
    const bool is_unary = absl::StrContains(way.name, "unary");
    CHECK(transcript.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(count(transcript.initial, cookie) + count(transcript.trailing, cookie) == 1);
    if (is_unary && are_seen) CHECK(count(transcript.initial, cookie) == 1);
  }
}

TEST_CASE("sessions: a call that is made again has the cookie of the attempt that answered",
          "[channel][session][A55-21][A55-37][A44]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool succeeds = GENERATE(true, false);
  INFO(to_string(api) << (succeeds ? ", at last" : ", and fails"));
  EchoServer first;
  EchoServer second;
  SessionWorld world;
  world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 2, 1ms, 4ms});
  const auto to_first = world.connect(first.address());
  const auto to_second = world.connect(second.address());
  world.publish(keeping({to_first, to_second}));
  EchoRequest request;
  request.set_failures(succeeds ? 1 : 9);
  request.set_status(grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext context;
  EchoReply reply;
  const grpc::Status status = call(*world.stub, api, context, request, reply);
  CHECK(second.service().calls == 1);
  const auto& initial = context.GetServerInitialMetadata();
  const auto& trailing = context.GetServerTrailingMetadata();
  const auto& there = succeeds ? initial : trailing;
  CHECK(status.ok() == succeeds);
  CHECK(initial.count("set-cookie") + trailing.count("set-cookie") == 1);
  REQUIRE(there.count("set-cookie") == 1);
  CHECK(there.find("set-cookie")->second == cookie_of(to_second));
}

// Covers streams, and also unary calls in several batches.
TEST_CASE("sessions: however a call is made again, it has one cookie, the last attempt's",
          "[channel][session][A55-21][A55-37][A44]") {
  const bool succeeds = GENERATE(true, false);
  const int reads = GENERATE(0, 1);
  CAPTURE(succeeds, reads);
  EchoServer first;
  EchoServer second;
  SessionWorld world;
  world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 2, 1ms, 4ms});
  const auto to_first = world.connect(first.address());
  const auto to_second = world.connect(second.address());
  first.service().failing.reads = second.service().failing.reads = reads;
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    first.service().failing.times = 1;
    second.service().failing.times = succeeds ? 0 : 1;
    world.publish(keeping({to_first, to_second}));
    const Transcript ours = converse(way, saying("a"), world.channel, second.service());
    CHECK(ours.status.ok() == succeeds);
    CHECK(count(succeeds ? ours.initial : ours.trailing, told(cookie_of(to_second))) == 1);
    CHECK(count(ours.initial + ours.trailing, " set-cookie=") == 1);
  }
}

TEST_CASE("sessions: a failure that no policy covers has the cookie in its trailers",
          "[channel][session][A55-21][A44]") {
  const int reads = GENERATE(0, 1);
  CAPTURE(reads);
  EchoServer server;
  SessionWorld world;
  world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 2, 1ms, 4ms});
  const auto connection = world.connect(server.address());
  server.service().failing.status = grpc::StatusCode::INTERNAL;
  server.service().failing.reads = reads;
  world.publish(keeping({connection}));
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    server.service().failing.times = 1;
    const Transcript ours = converse(way, saying("a"), world.channel, server.service());
    CHECK(ours.status.error_code() == grpc::StatusCode::INTERNAL);
    CHECK(count(ours.trailing, told(cookie_of(connection))) == 1);
    CHECK(count(ours.initial + ours.trailing, " set-cookie=") == 1);
  }
}

// After a failed write the channel reads the headers itself, to learn how the attempt ended. The
// application reads them later.
TEST_CASE("sessions: the headers of a stream whose write failed have the cookie",
          "[channel][session][A55-21][A6]") {
  EchoServer server;
  SessionWorld world;
  world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 3, 1ms, 4ms});
  const auto connection = world.connect(server.address());
  world.publish(keeping({connection}));
  server.service().failing.times = 1;
  server.service().failing.is_answered = true;
  grpc::ClientContext context;
  CHECK(write_until_lost(*world.stub, context) == grpc::StatusCode::UNAVAILABLE);
  const auto& initial = context.GetServerInitialMetadata();
  REQUIRE(initial.count("set-cookie") == 1);
  CHECK(initial.find("set-cookie")->second == cookie_of(connection));
  CHECK(context.GetServerTrailingMetadata().count("set-cookie") == 0);
}

TEST_CASE("sessions: a call that ends before its next attempt begins has no cookie",
          "[channel][session][A55-21][A55-24]") {
  EchoServer server;
  SessionWorld world;
  const auto connection = world.connect(server.address());
  SECTION("its connection died before it was sent") {
    world.publish(keeping({connection}));
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    EchoReply reply;
    grpc::Status status;
    const auto reader = world.stub->PrepareAsyncUnary(&context, EchoRequest(), &queue);
    kill(server, connection);
    reader->StartCall();
    reader->Finish(&reply, &status, &status);
    world.wait_for_queue(1);
    context.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + 20s) ==
            grpc::CompletionQueue::GOT_EVENT);
    CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
    CHECK(context.GetServerInitialMetadata().count("set-cookie") == 0);
    CHECK(context.GetServerTrailingMetadata().count("set-cookie") == 0);
    queue.Shutdown();
    CHECK_FALSE(queue.Next(&tag, &ok));
  }
  SECTION("it was cancelled while it backed off") {
    world.retry = lb::RetryRules({{absl::StatusCode::kUnavailable}, 3, 1ms, 4ms});
    world.publish(keeping({connection}));
    server.service().failing.pushback = "3600000";
    for (const Way& way : ways()) {
      CAPTURE(way.name);
      server.service().failing.times = 1;
      std::atomic<grpc::ClientContext*> context{nullptr};
      Manner manner = saying("a");
      manner.prepare = [&](grpc::ClientContext& made) {
        made.set_deadline(std::chrono::system_clock::time_point::max());
        context = &made;
      };
      std::thread canceller([&] {
        world.wait_for_queue(1);
        context.load()->TryCancel();
      });
      manner.talked = [&] { canceller.join(); };
      const Transcript ours = converse(way, manner, world.channel, server.service());
      CHECK(ours.status.error_code() == grpc::StatusCode::CANCELLED);
      CHECK(count(ours.initial + ours.trailing, " set-cookie=") == 0);
    }
  }
}

TEST_CASE("sessions: a call whose connection died before it was sent has the other one's cookie",
          "[channel][session][A55-21]") {
  EchoServer dying;
  EchoServer living;
  SessionWorld world;
  const auto to_dying = world.connect(dying.address());
  const auto to_living = world.connect(living.address());
  world.publish(keeping({to_dying}));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  EchoReply reply;
  grpc::Status status;
  EchoRequest request;
  const auto reader = world.stub->PrepareAsyncUnary(&context, request, &queue);
  kill(dying, to_dying);
  reader->StartCall();
  reader->Finish(&reply, &status, &status);
  world.publish(keeping({to_living}));
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + 20s) ==
          grpc::CompletionQueue::GOT_EVENT);
  REQUIRE(status.ok());
  REQUIRE(context.GetServerInitialMetadata().count("set-cookie") == 1);
  CHECK(context.GetServerInitialMetadata().find("set-cookie")->second == cookie_of(to_living));
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
}

TEST_CASE("sessions: no cookie without a session, without an answer, or without news",
          "[channel][session][A55-14][A55-24]") {
  EchoServer server;
  SessionWorld world;
  const auto connection = world.connect(server.address());
  Manner manner = saying("a");
  SECTION("the path is not the cookie's") {
    world.filters = session_chain("/signalbox.test.Ech");
    world.publish(keeping({connection}));
  }
  SECTION("its cookie is as it was") {
    const std::string cookie(absl::StripSuffix(cookie_of(connection), "; HttpOnly"));
    manner.prepare = [cookie](grpc::ClientContext& context) {
      context.AddMetadata("cookie", cookie);
    };
    world.publish(keeping({connection}));
  }
  SECTION("nobody could be picked") {
    world.publish_failure(absl::UnavailableError("nobody is there"));
  }
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    const Transcript transcript = converse(way, manner, world.channel, server.service());
    CHECK(count(transcript.initial + transcript.trailing, " set-cookie=") == 0);
  }
}

TEST_CASE("cookie jar: takes the filter's cookie and the server's, and sends them",
          "[channel][session][cookie_jar][A55-42]") {
  SessionWorld world;
  world.filters = session_chain("/signalbox.test.Echo");
  CookieJar jar;
  EchoReply reply;
  const auto call_with_jar = [&] {
    grpc::ClientContext context;
    jar.send(context, "/signalbox.test.Echo/Unary");
    static_cast<void>(world.stub->Unary(&context, EchoRequest(), &reply));
    return jar.receive(context);
  };
  const auto session_of = [](const ConnectionPtr& connection) {
    return std::string(absl::StripSuffix(cookie_of(connection), "; HttpOnly"));
  };
  BasketService baskets;
  const ServerOf server(baskets);
  const auto connection = world.connect(server.address());
  world.publish(keeping({connection}));
  const absl::Status first = call_with_jar();
  // One cookie is invalid; the jar stored the others.
  CHECK(first.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(first.message()), Catch::Contains("has no '='"));
  CHECK(reply.text().empty());  // Not even an empty header.
  call_with_jar().IgnoreError();
  CHECK(reply.text() == absl::StrCat("[basket=7; ", session_of(connection), "; late=1]"));
  CHECK(jar.cookie_header("/signalbox.test.Echo/Chat") ==
        absl::StrCat(session_of(connection), "; late=1"));

  MuteService mute;
  const ServerOf mute_server(mute);
  const auto to_mute = world.connect(mute_server.address());
  world.publish(keeping({to_mute}));
  CHECK(call_with_jar().ok());
  CHECK(jar.cookie_header("/signalbox.test.Echo/Chat") ==
        absl::StrCat(session_of(to_mute), "; late=1"));
}

}  // namespace signalbox::test
