// SPDX-License-Identifier: Apache-2.0
#include "xds/server_uri.hpp"

#include <catch2/catch.hpp>

namespace signalbox::xds {

TEST_CASE("server URI: whether it stays on this machine", "[xds][A27]") {
  struct Row {
    const char* uri;
    bool here;
  };

  const auto row = GENERATE(values<Row>({
      {"127.0.0.1:18000", true},
      {"127.255.0.9:1", true},
      {"localhost:18000", true},
      {"LOCALHOST", true},
      {"[::1]:18000", true},
      {"::1", true},
      {"dns:localhost:1", true},
      {"dns:///localhost:1", true},
      {"dns://8.8.8.8/127.0.0.1:1", true},
      {"ipv4:127.0.0.1:1", true},
      {"ipv6:[::1]:1", true},
      {"ipv6:%5B::1%5D:1", true},
      {"unix:/run/xds.sock", true},
      {"unix:///run/xds.sock", true},
      {"unix:////run/xds.sock", true},
      {"unix-abstract:xds", true},
      {"10.0.0.1:1", false},
      {"127.example:1", false},
      {"127.0.0.1.example:1", false},
      {"localhost.example:1", false},
      {"xds.example:443", false},
      {"dns:///xds.example:443", false},
      {"dns://127.0.0.1/xds.example:443", false},
      {"dns://127.0.0.1", false},
      {"[2001:db8::1]:1", false},
      {"[::11]:1", false},
      {"ipv6:[2001:db8::1]:1", false},
      {"", false},
  }));
  DYNAMIC_SECTION(row.uri) {
    CHECK(is_loopback(row.uri) == row.here);
  }
}

TEST_CASE("server URI: the host that a TLS handshake names", "[xds][A65]") {
  struct Row {
    const char* uri;
    const char* host;
  };

  const auto row = GENERATE(values<Row>({
      {"xds.example:443", "xds.example"},
      {"xds.example", "xds.example"},
      {"dns:xds.example:443", "xds.example"},
      {"dns:///xds.example:443", "xds.example"},
      {"dns://8.8.8.8/xds.example:443", "xds.example"},
      {"passthrough:///xds.example:443", "xds.example"},
      {"ipv4:10.0.0.1:443", "10.0.0.1"},
      {"ipv6:%5B2001:db8::1%5D:443", "2001:db8::1"},
      {"unix:///run/xds.sock", ""},
      {"", ""},
  }));
  DYNAMIC_SECTION(row.uri) {
    CHECK(server_host(row.uri) == row.host);
  }
}

TEST_CASE("server URI: the absolute path of a socket has one slash for gRPC", "[xds][A27]") {
  for (const char* uri : {"unix:/run/xds.sock", "unix:///run/xds.sock", "unix:////run/xds.sock"}) {
    INFO(uri);
    CHECK(dial_target(uri) == "unix:/run/xds.sock");
  }
  for (const char* uri : {"unix:xds.sock", "unix://a/b", "unix-abstract:xds", "dns:///a:1", ""}) {
    CHECK(dial_target(uri) == uri);
  }
}

}  // namespace signalbox::xds
