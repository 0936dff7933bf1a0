// SPDX-License-Identifier: Apache-2.0
#include "actors/io/connection_arguments.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include <catch2/catch.hpp>
#include <grpc/grpc.h>

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;

// gRPC uses the first of several arguments with one name.
const grpc_arg& used(const grpc::ChannelArguments& arguments, absl::string_view name) {
  const grpc_channel_args all = arguments.c_channel_args();
  const std::span<const grpc_arg> each(all.args, all.num_args);
  const auto found =
      std::ranges::find_if(each, [&](const grpc_arg& one) { return one.key == name; });
  REQUIRE(found != each.end());
  return *found;
}

int number(const grpc::ChannelArguments& arguments, absl::string_view name) {
  const grpc_arg& found = used(arguments, name);
  REQUIRE(found.type == GRPC_ARG_INTEGER);
  return found.value.integer;
}

}  // namespace

TEST_CASE("connection arguments: keepalive_time outranks the user's arguments for pings",
          "[io][keepalive]") {
  grpc::ChannelArguments said;
  said.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 600'000);
  said.SetInt("user.first", 1);
  said.SetString(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, "no number");
  said.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  said.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 2);
  said.SetInt("user.last", 2);
  const auto made = connection_arguments(
      said, Keepalive{.time = 5s, .timeout = 2s, .without_calls = true}, "orders", 1s);
  CHECK(number(made, GRPC_ARG_KEEPALIVE_TIME_MS) == 5'000);
  CHECK(number(made, GRPC_ARG_KEEPALIVE_TIMEOUT_MS) == 2'000);
  CHECK(number(made, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS) == 1);
  CHECK(number(made, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA) == 0);
  CHECK(number(made, "user.first") == 1);
  CHECK(number(made, "user.last") == 2);
  CHECK(number(said, GRPC_ARG_KEEPALIVE_TIME_MS) == 600'000);  // The user's object is unchanged.
}

TEST_CASE("connection arguments: without keepalive_time the user's arguments for pings hold",
          "[io][keepalive]") {
  grpc::ChannelArguments said;
  said.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 600'000);
  const auto made = connection_arguments(said, std::nullopt, "orders", 1s);
  CHECK(number(made, GRPC_ARG_KEEPALIVE_TIME_MS) == 600'000);
}

TEST_CASE("connection arguments: the handshake's authority outranks the user's", "[io][tls]") {
  grpc::ChannelArguments said;
  said.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "10.0.0.1");
  const auto made = connection_arguments(said, std::nullopt, handshake_authority("10.0.0.1"), 1s);
  CHECK(std::string(used(made, GRPC_ARG_DEFAULT_AUTHORITY).value.string) == "endpoint.invalid");
  CHECK(default_authority(said) == "10.0.0.1");
}

TEST_CASE("connection arguments: the user's values for signalbox's defaults hold", "[io]") {
  grpc::ChannelArguments said;
  said.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 1);
  said.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 1);
  said.SetUserAgentPrefix("shop");
  const auto made = connection_arguments(said, std::nullopt, "orders", 1s);
  CHECK(number(made, GRPC_ARG_HTTP2_BDP_PROBE) == 1);
  CHECK(number(made, GRPC_ARG_ENABLE_CHANNELZ) == 1);
  CHECK(absl::string_view(used(made, GRPC_ARG_PRIMARY_USER_AGENT_STRING).value.string)
            .find("shop ") == 0);
}

TEST_CASE(
    "connection arguments: a socket's channel has the user's arguments, and the same defaults",
    "[io]") {
  grpc::ChannelArguments said;
  said.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 1);
  said.SetInt("user.first", 1);
  const auto made = socket_arguments(said, Keepalive{.time = 5s, .timeout = 2s});
  CHECK(number(made, GRPC_ARG_HTTP2_BDP_PROBE) == 1);
  CHECK(number(made, GRPC_ARG_ENABLE_CHANNELZ) == 0);
  CHECK(number(made, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES) == 1 << 20);
  CHECK(number(made, GRPC_ARG_DISABLE_CLIENT_AUTHORITY_FILTER) == 1);
  CHECK(number(made, GRPC_ARG_KEEPALIVE_TIME_MS) == 5'000);
  CHECK(number(made, "user.first") == 1);
}

TEST_CASE("connection arguments: with pings, TCP gives up after the pings' timeout",
          "[io][keepalive]") {
  grpc::ChannelArguments arguments;
  CHECK(tcp_user_timeout(arguments) == std::nullopt);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 600'000);
  CHECK(tcp_user_timeout(arguments) == 20s);  // gRPC's default.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2'000);
  CHECK(tcp_user_timeout(arguments) == 2s);
  // As in gRPC, the default takes the place of a timeout that is no time.
  for (const int timeout : {0, -1}) {
    arguments = grpc::ChannelArguments();
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 600'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, timeout);
    CHECK(tcp_user_timeout(arguments) == 20s);
  }
}

TEST_CASE("connection arguments: what a channel on a socket would ignore makes gRPC connect",
          "[io]") {
  struct Row {
    const char* name;
    int number;
    bool must;
  };

  const auto row = GENERATE(values<Row>({
      {GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 1, true},
      {GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0, false},
      {GRPC_ARG_ENABLE_CHANNELZ, 1, true},
      {GRPC_ARG_ENABLE_CHANNELZ, 0, false},
      {GRPC_ARG_KEEPALIVE_TIME_MS, 1'000, false},
      {GRPC_ARG_TCP_READ_CHUNK_SIZE, 4'096, false},
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 4'096, false},
  }));
  CAPTURE(row.name, row.number);
  grpc::ChannelArguments said;
  said.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  CHECK(why_grpc_must_connect(said).empty());
  said.SetInt(row.name, row.number);
  const std::string why = why_grpc_must_connect(said);
  CHECK(why.empty() == !row.must);
  if (row.must) CHECK(why.find(row.name) != std::string::npos);
}

TEST_CASE("connection arguments: a proxy or a service config makes gRPC connect", "[io]") {
  const char* const name = GENERATE(
      as<const char*>(), GRPC_ARG_HTTP_PROXY, GRPC_ARG_SERVICE_CONFIG, "grpc.lb_policy_name");
  grpc::ChannelArguments said;
  said.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  said.SetString(name, "text");
  CHECK(why_grpc_must_connect(said).find(name) != std::string::npos);
}

TEST_CASE("connection arguments: a proxy of the environment makes gRPC connect, unless refused",
          "[io]") {
  struct Proxy {
    Proxy() { ::setenv("grpc_proxy", "http://127.0.0.1:1", 1); }

    ~Proxy() { ::unsetenv("grpc_proxy"); }
  };

  const Proxy proxy;
  grpc::ChannelArguments said;
  CHECK(why_grpc_must_connect(said).find("the environment sets grpc_proxy") == 0);
  said.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  CHECK(why_grpc_must_connect(said).empty());
}

TEST_CASE("connection arguments: a handshake asks for a DNS name, and never for an address",
          "[io][tls]") {
  struct Row {
    std::string authority;
    bool is_asked_for;
  };

  const auto row = GENERATE(values<Row>({
      {"orders", true},
      {"echo.default.svc:7070", true},
      {"echo.default.svc.:7070", true},
      {"x_y-z.3com:80", true},
      {std::string(253, 'a') + ":80", true},
      {"10.0.0.1:80", false},
      {"10.0.0.1", false},
      {"10.0.0.1.:80", false},
      {"127.1:80", false},
      {"2130706433", false},
      {"[2001:db8::1]:80", false},
      {"[::1]", false},
      {"::1", false},
      {"team%2Forders:80", false},
      {":80", false},
      {".:80", false},
      {"", false},
      {std::string(254, 'a') + ":80", false},
  }));
  CAPTURE(row.authority);
  CHECK(handshake_authority(row.authority) ==
        (row.is_asked_for ? row.authority : "endpoint.invalid"));
}

}  // namespace signalbox::actors
