// SPDX-License-Identifier: Apache-2.0
#include "xds/percent_encoding.hpp"

#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

TEST_CASE("percent_encoding: keeps what a path may hold and encodes the rest", "[xds][A47]") {
  CHECK(percent_encode_path("aZ09-._~!$&'()*+,;=:@/") == "aZ09-._~!$&'()*+,;=:@/");
  CHECK(percent_encode_path(" %?#[]\x7f\xc3") == "%20%25%3F%23%5B%5D%7F%C3");
  CHECK(percent_encode_authority("[::1]:80/x") == "[::1]:80%2Fx");
}

TEST_CASE("percent_encoding: decoding undoes encoding", "[xds][A47]") {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte)
    every_byte.push_back(static_cast<char>(byte));
  CHECK(percent_decode(percent_encode_path(every_byte)) == every_byte);
  CHECK(percent_decode("%2f%2F") == "//");
}

TEST_CASE("percent_encoding: half an encoding is none", "[xds][A47]") {
  for (const char* text : {"%", "%2", "a%2x", "%x2", "%%20"}) {
    INFO(text);
    CHECK(percent_decode(text) == std::nullopt);
  }
}

}  // namespace
}  // namespace signalbox::xds
