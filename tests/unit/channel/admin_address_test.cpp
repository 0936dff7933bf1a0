// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_address.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::channel {

using Catch::Matchers::Contains;

TEST_CASE("admin address: unix sockets and the loopback, and back to text", "[channel][admin]") {
  struct Row {
    std::string text;
    AdminAddress address;
    std::string shown;
  };

  const auto row = GENERATE(values<Row>({
      {"unix:/run/a.sock", UnixAddress{"/run/a.sock"}, "unix:/run/a.sock"},
      {"unix:a.sock", UnixAddress{"a.sock"}, "unix:a.sock"},
      {"unix:127.0.0.1:1", UnixAddress{"127.0.0.1:1"}, "unix:127.0.0.1:1"},
      {"127.0.0.1:9901", LoopbackAddress{"127.0.0.1", 9901}, "127.0.0.1:9901"},
      {"127.1.2.3:0", LoopbackAddress{"127.1.2.3", 0}, "127.1.2.3:0"},
      {"localhost:1", LoopbackAddress{"127.0.0.1", 1}, "127.0.0.1:1"},
      {"[::1]:65535", LoopbackAddress{"::1", 65535}, "[::1]:65535"},
  }));
  const auto address = parse_admin_address(row.text);
  INFO(row.text << " " << address.status().ToString());
  REQUIRE(address.ok());
  CHECK(*address == row.address);
  CHECK(to_string(*address) == row.shown);
}

TEST_CASE("admin address: what others could reach, or nobody, is refused and named",
          "[channel][admin]") {
  struct Row {
    std::string text;
    std::string says;
  };

  const std::string longest(107, 'x');
  CHECK(parse_admin_address("unix:" + longest).ok());
  const auto row = GENERATE_COPY(values<Row>({
      {"0.0.0.0:9901", "'0.0.0.0' is no loopback address"},
      {"[::]:9901", "'[::]' is no loopback address"},
      {":9901", "'' is no loopback address"},
      {"*:9901", "'*' is no loopback address"},
      {"10.0.0.1:9901", "'10.0.0.1' is no loopback address"},
      {"128.0.0.1:9901", "'128.0.0.1' is no loopback address"},
      {"127.1:9901", "'127.1' is no loopback address"},
      {"example.com:9901", "'example.com' is no loopback address"},
      {"::1:9901", "'::1' is no loopback address"},
      {"localhost", "there is no port"},
      {"[::1]", "there is no port"},
      {"localhost:", "there is no port"},
      {"localhost:http", "'http' is no port"},
      {"localhost:65536", "'65536' is no port"},
      {"localhost:-1", "'-1' is no port"},
      {std::string("127.0.0.1\0x:1", 13), "is no loopback address"},
      {"", "there is no port"},
      {"unix:", "the path is empty"},
      {std::string("unix:a\0b", 8), "NUL"},
      {"unix:" + longest + "x", "108 bytes, more than 107"},
  }));
  const auto address = parse_admin_address(row.text);
  REQUIRE_FALSE(address.ok());
  CHECK(address.status().code() == absl::StatusCode::kInvalidArgument);
  const std::string message(address.status().message());
  CHECK_THAT(message, Contains(row.says) && Contains("admin address '" + row.text + "'"));
  CHECK_THAT(message, Contains("expected unix:PATH, or HOST:PORT of the loopback"));
}

TEST_CASE("admin address: a Host header names the loopback, or another machine",
          "[channel][admin]") {
  for (const char* host : {"localhost", "LOCALHOST:9901", "127.0.0.1", "127.0.0.1:1", "[::1]:1"})
    CHECK(is_loopback_host(host));
  for (const char* host : {"", "example.com", "localhost.example.com:1", "10.0.0.1:1", "0.0.0.0"})
    CHECK_FALSE(is_loopback_host(host));
  CHECK_FALSE(is_loopback_host(absl::string_view("127.0.0.1\0", 10)));
}

}  // namespace signalbox::channel
