// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/metrics_server.hpp"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/http_peer.hpp"

namespace signalbox::channel::metrics_server_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

absl::StatusOr<std::unique_ptr<MetricsServer>> serve(const std::string& address) {
  return MetricsServer::start(address, [] { return std::string("x 1\n"); });
}

// Whether a socket listens on this local IPv4 address and port.
bool listens_on(const char* ip, int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(descriptor >= 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, ip, &name.sin_addr);
  const bool listens =
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  ::close(descriptor);
  return listens;
}

// A port that is free at this moment.
int free_port() {
  const auto server = serve("127.0.0.1:0");
  REQUIRE(server.ok());
  return (*server)->port();
}

}  // namespace

TEST_CASE("metrics server: has one page, to be read", "[channel][metrics]") {
  const auto server = serve("127.0.0.1:0");
  REQUIRE(server.ok());
  const int port = (*server)->port();
  const std::string page = ask(port, "GET /metrics HTTP/1.1\r\nHost: prometheus.example\r\n\r\n");
  CHECK_THAT(page, StartsWith("HTTP/1.1 200 ") && Contains("text/plain; version=0.0.4"));
  CHECK_THAT(page, Catch::EndsWith("\r\n\r\nx 1\n"));
  CHECK_THAT(ask(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
             StartsWith("HTTP/1.1 404 ") && Contains("there is no such page; there is /metrics"));
  CHECK_THAT(ask(port, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
             StartsWith("HTTP/1.1 405 "));
}

TEST_CASE("metrics server: a port alone is one of 127.0.0.1", "[channel][metrics]") {
  const auto alone = serve("0");
  REQUIRE(alone.ok());
  CHECK(listens_on("127.0.0.1", (*alone)->port()));
  CHECK_FALSE(listens_on("127.0.0.2", (*alone)->port()));
  const auto all = serve("0.0.0.0:0");
  REQUIRE(all.ok());
  CHECK(listens_on("127.0.0.2", (*all)->port()));
}

TEST_CASE("metrics server: an address that is none, or is taken, is an error",
          "[channel][metrics]") {
  for (const char* none : {"no address",
                           "",
                           ":",
                           "9199s",
                           "+9199",
                           "-1",
                           "127.0.0.1",
                           "127.0.0.1:",
                           ":9199",
                           "::9199",
                           "[::1]",
                           "127.0.0.1:70000",
                           "127.0.0.1:http",
                           "0,9199",
                           "127.0.0.1:0,127.0.0.1:0"}) {
    INFO(none);
    const absl::Status refused = serve(none).status();
    CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(refused.message()), Contains("expected host:port"));
  }
  const auto first = serve("127.0.0.1:0");
  REQUIRE(first.ok());
  const std::string taken = absl::StrCat("127.0.0.1:", (*first)->port());
  const absl::Status second = serve(taken).status();
  CHECK(second.code() == absl::StatusCode::kUnavailable);
  CHECK(second.message() ==
        absl::StrCat("metrics cannot be served on ", taken, ": Address already in use"));
}

TEST_CASE("metrics server: its port is free when it has ended", "[channel][metrics]") {
  const int port = free_port();
  CHECK_FALSE(listens_on("127.0.0.1", port));
  CHECK(serve(absl::StrCat("127.0.0.1:", port)).ok());
}

}  // namespace signalbox::channel::metrics_server_test
