// SPDX-License-Identifier: Apache-2.0
#include "actors/io/address_lookup.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::actors {

TEST_CASE("address lookup: an IP address is its own", "[actors][A37-2]") {
  const std::string text = GENERATE("127.0.0.1:80", "[::1]:443", "[2001:db8::1]:0");
  const auto found = make_system_lookup()->resolve(DnsName(text));
  INFO(found.status().ToString());
  REQUIRE(found.ok());
  CHECK(*found == std::vector<Address>{Address(text)});
}

TEST_CASE("address lookup: what is no name is told", "[actors][A37-2]") {
  const std::string text = GENERATE("[]:80", "no port");
  const auto found = make_system_lookup()->resolve(DnsName(text));
  CHECK_FALSE(found.ok());
  CHECK(std::string(found.status().message()).starts_with("cannot resolve \""));
}

}  // namespace signalbox::actors
