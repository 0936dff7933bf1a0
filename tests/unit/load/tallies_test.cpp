// SPDX-License-Identifier: Apache-2.0
#include "tools/load/tallies.hpp"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("tallies: an address has one number, whatever gRPC calls the peer", "[tools][load]") {
  EndpointNumbers numbers;
  const auto first = numbers.find("ipv4:127.0.0.1:1");
  CHECK(first.number == 1);
  CHECK(first.new_address == "127.0.0.1:1");
  CHECK(numbers.find("xds:///orders").number == EndedCall::kNoEndpoint);
  CHECK(numbers.find("ipv4:127.0.0.1:2").number == 2);
  for (const char* peer : {"ipv4:127.0.0.1:1", "ipv4:///127.0.0.1:1", "ipv4:///127.0.0.1:1"}) {
    const auto again = numbers.find(peer);
    CHECK(again.number == 1);
    CHECK_FALSE(again.new_address);
  }
}

TEST_CASE("tallies: messages are counted, and their number is bounded", "[tools][load]") {
  MessageCounts messages;
  messages.add("a");
  messages.add("a");
  CHECK(messages.counts() == std::map<std::string, std::uint64_t>{{"a", 2}});
  for (std::size_t i = 0; i < MessageCounts::kMost; ++i)
    messages.add(absl::StrCat(i));
  CHECK(messages.counts().size() == MessageCounts::kMost);
  messages.add("a");
  CHECK(messages.counts().at("a") == 3);
}

}  // namespace signalbox::tools
