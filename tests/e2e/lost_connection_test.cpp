// SPDX-License-Identifier: Apache-2.0
//
// A server fails a call with the text of a GOAWAY as a status of its own. The connection is then
// asked whether it takes calls any more (lost_connection). Whatever the server makes of the
// question, the connection is not lost.
#include "actors/io/lost_connection.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/io/grpc_connector.hpp"
#include "tests/e2e/channel_world.hpp"
#include "tests/e2e/cut_headers.hpp"

namespace signalbox::test {
namespace {

using actors::GrpcConnection;
using actors::Reach;

/// SETTINGS that allow no further call.
std::string no_streams() {
  constexpr std::uint8_t kType = 4;
  return http2_frame(kType, 0, std::string("\0\3\0\0\0\0", 6));
}

/// `frame` of a connection's first call, for its second call, which has the number 3.
std::string for_second_call(std::string frame) {
  frame[8] = 3;
  return frame;
}

/// A connection with a first call that a status of the server's own has failed. The question to the
/// connection has 200 ms if reach_of() asks it.
struct Misled {
  /// `with_it`: frames that the server sends just before that status. `answer`: the server's frames
  /// when it has got the question; empty: it stays silent.
  explicit Misled(const std::string& with_it, const std::string& answer = "")
      : server(std::vector<TalkingSocket::Turn>{
            {"", http2_settings()},
            {"one", with_it + trailers_only(grpc::StatusCode::UNAVAILABLE, "GOAWAY received")},
            {"Health/Check", answer},
            {"what no client says", ""}}),
        connection(std::static_pointer_cast<const GrpcConnection>(
            world.connect(Address(server.address())))) {
    context.set_authority(std::string(connection->authority()));
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    EchoRequest request;
    request.set_text("one");
    EchoReply reply;
    const auto failed = Echo::NewStub(connection->channel())->Unary(&context, request, &reply);
    REQUIRE(failed.error_message() == "GOAWAY received");
    context.set_deadline(std::chrono::system_clock::now() + 200ms);
  }

  const TalkingSocket server;
  ChannelWorld world;
  const std::shared_ptr<const GrpcConnection> connection;
  grpc::ClientContext context;
};

}  // namespace

TEST_CASE("lost_connection: a server that fails the question has not ended the connection",
          "[io][connector]") {
  Misled misled("", for_second_call(trailers_only(grpc::StatusCode::UNAVAILABLE, "overloaded")));
  std::promise<Reach> found;
  actors::find_reach(misled.context, misled.connection, /*was_taken=*/true, [&](Reach reach) {
    found.set_value(reach);
  });
  auto reach = found.get_future();
  REQUIRE(reach.wait_for(10s) == std::future_status::ready);
  CHECK(reach.get() == Reach::kServer);
  CHECK(misled.connection->is_ready());
}

TEST_CASE(
    "lost_connection: a server that has no room for the question has not ended the connection",
    "[io][connector]") {
  Misled misled(no_streams());
  CHECK(actors::reach_of(misled.context, *misled.connection, /*was_taken=*/true) == Reach::kServer);
  CHECK(misled.connection->is_ready());
}

}  // namespace signalbox::test
