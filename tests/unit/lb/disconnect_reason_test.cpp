// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/disconnect_reason.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

TEST_CASE("disconnect_reason: has gRPC's words for errors of gRPC and of the system",
          "[lb][subchannel][A94]") {
  struct Row {
    std::string error;
    std::string reason;
  };

  const auto row = GENERATE(values<Row>({
      {"GOAWAY received; Error code: 0; Debug Text: max_age", "GOAWAY NO_ERROR"},
      {"GOAWAY received; Error code: 11; Debug Text: too_many_pings", "GOAWAY ENHANCE_YOUR_CALM"},
      {"GOAWAY received; Error code: 13", "GOAWAY HTTP_1_1_REQUIRED"},
      {"GOAWAY received; Error code: 14", "GOAWAY UNKNOWN"},
      {"GOAWAY received; Error code: 99999999999999999999", "GOAWAY UNKNOWN"},
      {"GOAWAY received", "GOAWAY NO_ERROR"},
      {"recvmsg:Connection reset by peer", "connection reset"},
      {"sendmsg:Broken pipe", "connection reset"},
      {std::strerror(ECONNRESET), "connection reset"},
      {std::strerror(ETIMEDOUT), "connection timed out"},
      {"keepalive watchdog timeout", "connection timed out"},
      {std::strerror(ECONNABORTED), "connection aborted"},
      {std::strerror(EHOSTUNREACH), "socket error"},
      {"recvmsg:Input/output error", "socket error"},
      {"Socket closed", "unknown"},
      {"connection to 127.0.0.1:80 was closed", "unknown"},
      {"", "unknown"},
  }));
  INFO(row.error);
  CHECK(disconnect_reason(row.error) == row.reason);
  CHECK(disconnect_reason("connection to 127.0.0.1:80 was closed: " + row.reason) == row.reason);
}

}  // namespace
}  // namespace signalbox::lb
