// SPDX-License-Identifier: Apache-2.0
//
// The drop-in channel compared with gRPC's own: the transcripts of every conversation must agree
// (Agreement), with a pick that is ready and with a pick that waits.
#include <future>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <grpcpp/generic/generic_stub.h>

#include "tests/e2e/channel_world.hpp"
#include "tests/e2e/conversation.hpp"

namespace signalbox::test::grpc_channel_parity_test {
namespace {

EchoRequest say(const std::string& text) {
  EchoRequest request;
  request.set_text(text);
  request.set_times(3);
  return request;
}

EchoRequest fail_with(grpc::StatusCode code) {
  EchoRequest request = say("fails");
  request.set_status(code);
  return request;
}

EchoRequest hold() {
  EchoRequest request = say("holds");
  request.set_hold(true);
  return request;
}

std::vector<Manner> manners() {
  std::vector<Manner> all{
      {"words", {say("a"), say("b"), say("c")}, nullptr},
      {"one word", {say("a")}, nullptr},
      {"an empty message", {EchoRequest()}, nullptr},
      {"a megabyte", {say(std::string(1'500'000, 'x')), say("small")}, nullptr},
      {"corked", {say("a"), say("b")}, nullptr, true},
      {"corked, one message", {say("a")}, nullptr, true},
      {"metadata",
       {say("a")},
       [](grpc::ClientContext& context) {
         context.AddMetadata("x-tenant", "blue");
         context.AddMetadata("x-tenant", "green");
         context.AddMetadata("x-trace-bin", std::string("\0\x01\xff\n", 4));
         context.AddMetadata("x-empty", "");
       }},
      {"compressed",
       {say(std::string(100'000, 'x'))},
       [](grpc::ClientContext& context) { context.set_compression_algorithm(GRPC_COMPRESS_GZIP); }},
      {"wait_for_ready",
       {say("a")},
       [](grpc::ClientContext& context) { context.set_wait_for_ready(true); }},
      {"credentials on an insecure channel",
       {say("a")},
       [](grpc::ClientContext& context) {
         context.set_credentials(grpc::GoogleIAMCredentials("token", "selector"));
       }},
      {"a message that is larger than the server takes",
       {say(std::string(5'000'000, 'x'))},
       nullptr},
      {"the server's own status", {fail_with(grpc::StatusCode::FAILED_PRECONDITION)}, nullptr},
      {"the server's own UNAVAILABLE", {fail_with(grpc::StatusCode::UNAVAILABLE)}, nullptr},
      // gRPC may forget the call's peer when the deadline ends, so only the codes are compared.
      {"a deadline while the server holds it",
       {hold()},
       [](grpc::ClientContext& context) {
         context.set_deadline(std::chrono::system_clock::now() + 150ms);
       },
       false,
       Agreement::kCode},
      {"a deadline that was over",
       {say("late")},
       [](grpc::ClientContext& context) {
         context.set_deadline(std::chrono::system_clock::now() - 1s);
       },
       false,
       Agreement::kAllButMessage},
      {"cancelled while the server holds it", {hold()}, nullptr, false, Agreement::kCode, true},
      {"cancelled before it began",
       {say("never")},
       [](grpc::ClientContext& context) { context.TryCancel(); },
       false,
       Agreement::kAllButMessage},
  };
  return all;
}

}  // namespace

TEST_CASE("grpc_channel: every conversation goes as on gRPC's own channel",
          "[channel][queue][parity]") {
  const Manner manner = GENERATE(from_range(manners()));
  EchoServer server;
  ChannelWorld world;
  const auto connection = world.connect(server.address());
  const auto target = "ipv4:///" + server.address().str();
  const auto plain = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
  REQUIRE(plain->WaitForConnected(std::chrono::system_clock::now() + 10s));
  for (const Way& way : ways()) {
    CAPTURE(manner.name, way.name);
    // A call that reached no server has its channel's target as its peer.
    const auto told = [&](const Transcript& transcript) {
      return absl::StrReplaceAll(transcript.text(manner.agreement),
                                 {{"peer xds:///orders", "peer unknown"},
                                  {absl::StrCat("peer ", target), "peer unknown"}});
    };
    const auto expected = converse(way, manner, plain, server.service());
    world.publish_ready({connection});
    const auto ready = converse(way, manner, world.channel, server.service());
    CHECK(told(ready) == told(expected));
    world.publish(nullptr);
    const auto queued = [&] {
      const LatePublisher later(world, [&] { world.publish_ready({connection}); });
      return converse(way, manner, world.channel, server.service());
    }();
    CHECK(told(queued) == told(expected));
  }
  CHECK(world.waiting->size() == 0);
  world.wait_for_no_uses();
  CHECK_FALSE(connection->in_use());
}

TEST_CASE("grpc_channel: every way to call hears of a pick that fails or is dropped",
          "[channel][queue]") {
  struct Case {
    const char* name;
    bool is_drop;
    bool wait_for_ready;
  };

  const Case which = GENERATE(Case{"failed", false, false},
                              Case{"dropped", true, false},
                              Case{"dropped, wait_for_ready", true, true});
  const bool queued = GENERATE(false, true);
  CAPTURE(which.name, queued);
  ChannelWorld world;
  Manner manner{"one word", {say("a")}, [&](grpc::ClientContext& context) {
                  context.set_wait_for_ready(which.wait_for_ready);
                }};
  const auto refuse = [&] {
    world.publish([&](const PickArgs&) {
      PickResult result;
      const absl::Status status = absl::UnavailableError("nobody is there");
      if (which.is_drop) {
        result.outcome = Drop{status};
      } else {
        result.outcome = Fail{status};
      }
      return result;
    });
  };
  const EchoService nobody;
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    if (!queued) refuse();
    const auto told = [&] {
      if (!queued) return converse(way, manner, world.channel, nobody);
      world.publish(nullptr);
      const LatePublisher later(world, refuse);
      return converse(way, manner, world.channel, nobody);
    }();
    CHECK(told.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(told.status.error_message() ==
          "xds:///orders: cluster orders: nobody is there (node ID: node-7)");
    CHECK(told.replies.empty());
    CHECK(told.peer == "xds:///orders");
  }
  CHECK(world.stats->started() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: every way to call ends with the runtime, while it waits and afterwards",
          "[channel][queue]") {
  const EchoService nobody;
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    ChannelWorld world;
    Manner manner{"one word", {say("a")}, [](grpc::ClientContext& context) {
                    context.set_wait_for_ready(true);
                  }};
    for (const bool waits : {true, false}) {
      const LatePublisher end(world, [&] { world.waiting->close(); });
      const auto told = converse(way, manner, world.channel, nobody);
      CAPTURE(waits);
      CHECK(told.status.error_code() == grpc::StatusCode::UNAVAILABLE);
      CHECK(told.status.error_message() ==
            "xds:///orders: the signalbox runtime has been shut down (node ID: node-7)");
    }
    world.wait_for_no_uses();
  }
}

TEST_CASE("grpc_channel: every way to call hears of metadata that gRPC would end the process for",
          "[channel][misuse][limits]") {
  struct Case {
    const char* when;
    std::string name;
    std::string value;
    std::string told;
  };

  const std::string value = ": a value must be printable ASCII, or the name end with -bin: byte ";
  const std::string end = " is not printable ASCII";
  const std::string name = "metadata: a name must be of a-z, 0-9, '-', '_' and '.', found ";
  const auto it = GENERATE_COPY(values<Case>({
      {"a new line", "x-user", "a\nb", "metadata \"x-user\"" + value + "2 of 3" + end},
      {"a NUL", "x-user", std::string("\0", 1), "metadata \"x-user\"" + value + "1 of 1" + end},
      {"not ASCII", "x-user", "\xc3\xa9", "metadata \"x-user\"" + value + "1 of 2" + end},
      {"a secret",
       "authorization",
       "Bearer secret\n",
       "metadata \"authorization\"" + value + "14 of 14" + end},
      {"no name before -bin", "-bin", "\x01", "metadata \"-bin\"" + value + "1 of 1" + end},
      {"more than can be read",
       "x",
       std::string(std::size_t{1} << 20U, '\x01'),
       "metadata \"x\"" + value + "1 of 1048576" + end},
      {"a capital letter", "X-User", "a", name + "\"X-User\""},
      {"HTTP/2's own", ":path", "/a", name + "\":path\""},
      {"a space", "x user", "a", name + "\"x user\""},
      {"no name", "", "a", name + "\"\""},
  }));
  INFO(it.when);
  EchoServer server;
  ChannelWorld world;
  world.publish_ready({world.connect(server.address())});
  Manner manner{"one word", {say("a")}, [&](grpc::ClientContext& context) {
                  context.AddMetadata("x-good", "");
                  context.AddMetadata(it.name, it.value);
                  context.AddMetadata("x-good-bin", std::string("\0\n", 2));
                  context.AddMetadata(it.name, it.value);
                }};
  const EchoService nobody;
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    const auto told = converse(way, manner, world.channel, nobody);
    CHECK(told.status.error_code() == grpc::StatusCode::INTERNAL);
    CHECK(told.status.error_message() == "xds:///orders: " + it.told + " (node ID: node-7)");
    CHECK(told.replies.empty());
  }
  CHECK(server.service().calls == 0);
  CHECK(world.stats->started() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: a method without a name, or with an odd one, is the server's to refuse",
          "[channel][misuse]") {
  EchoServer server;
  ChannelWorld world;
  const auto connection = world.connect(server.address());
  world.publish_ready({connection});
  const auto plain =
      grpc::CreateChannel(server.address().str(), grpc::InsecureChannelCredentials());
  const std::string method =
      GENERATE(as<std::string>(), "", "/", "no slash", "/a b/", "/signalbox.test.Echo/Unary/");
  CAPTURE(method);
  const auto code = [&](const std::shared_ptr<grpc::ChannelInterface>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    EchoReply reply;
    const EchoRequest request = say("a");
    std::promise<grpc::Status> ended;
    grpc::TemplatedGenericStub<EchoRequest, EchoReply>(channel).UnaryCall(
        &context, method, {}, &request, &reply, [&](grpc::Status status) {
          ended.set_value(std::move(status));
        });
    return ended.get_future().get().error_code();
  };
  const grpc::StatusCode expected = code(plain);
  CHECK(expected == grpc::StatusCode::UNIMPLEMENTED);
  CHECK(code(world.channel) == expected);
  CHECK(server.service().calls == 0);
}

TEST_CASE("grpc_channel: a method or an authority that is no header's value fails the call",
          "[channel][misuse][limits]") {
  EchoServer server;
  ChannelWorld world;
  world.publish_ready({world.connect(server.address())});
  const auto end_of = [&](const std::string& method, const std::string& authority) {
    grpc::ClientContext context;
    context.set_authority(authority);
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    EchoReply reply;
    const EchoRequest request = say("a");
    std::promise<grpc::Status> ended;
    grpc::TemplatedGenericStub<EchoRequest, EchoReply>(world.channel)
        .UnaryCall(&context, method, {}, &request, &reply, [&](grpc::Status status) {
          ended.set_value(std::move(status));
        });
    return ended.get_future().get();
  };
  const std::string good = "/signalbox.test.Echo/Unary";
  CHECK(end_of(good, "").ok());
  CHECK(end_of(good, "a.example:80").ok());

  const grpc::Status method = end_of("/secret\n/Unary", "");
  CHECK(method.error_code() == grpc::StatusCode::INTERNAL);
  CHECK(method.error_message() ==
        "xds:///orders: method: byte 8 of 14 is not printable ASCII (node ID: node-7)");
  const grpc::Status authority = end_of(good, "secret.\x01.example");
  CHECK(authority.error_code() == grpc::StatusCode::INTERNAL);
  CHECK(authority.error_message() ==
        "xds:///orders: authority: byte 8 of 16 is not printable ASCII (node ID: node-7)");
  CHECK(server.service().calls == 2);
  world.wait_for_no_uses();
}

}  // namespace signalbox::test::grpc_channel_parity_test
