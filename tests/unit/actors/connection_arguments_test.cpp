// SPDX-License-Identifier: Apache-2.0
#include "actors/io/connection_arguments.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::actors {

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
