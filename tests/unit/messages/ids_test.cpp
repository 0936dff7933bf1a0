// SPDX-License-Identifier: Apache-2.0
#include "messages/ids.hpp"

#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include <catch2/catch.hpp>

namespace signalbox {
namespace {

TEST_CASE("ids: copies of an address share the memory of its text", "[messages][ids]") {
  const Address address{"192.168.100.200:8080"};
  const Address copy = address;  // NOLINT(performance-unnecessary-copy-initialization): the test.
  CHECK(&copy.str() == &address.str());
  Address assigned{"10.0.0.1:80"};
  assigned = address;
  CHECK(&assigned.str() == &address.str());
}

TEST_CASE("ids: an address is compared and hashed by its text", "[messages][ids]") {
  const Address address{"10.0.0.1:80"};
  const Address same{"10.0.0.1:80"};
  const Address later{"10.0.0.2:80"};
  REQUIRE(&same.str() != &address.str());
  CHECK(address == same);
  CHECK(absl::HashOf(address) == absl::HashOf(same));
  CHECK(absl::HashOf(address) == absl::HashOf(ClusterName{"10.0.0.1:80"}));
  CHECK(address != later);
  CHECK(address < later);
  CHECK_FALSE(later < same);
}

TEST_CASE("ids: an address without a text is empty", "[messages][ids]") {
  Address address{"10.0.0.1:80"};
  CHECK_FALSE(address.empty());
  const Address taken = std::move(address);
  CHECK(taken.str() == "10.0.0.1:80");
  // NOLINTNEXTLINE(bugprone-use-after-move): the state after a move is what is tested.
  CHECK(address == Address());
  CHECK(Address() == Address(""));
  CHECK(Address().str() == std::string());
  CHECK(Address() < taken);
}

}  // namespace
}  // namespace signalbox
