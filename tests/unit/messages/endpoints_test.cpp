// SPDX-License-Identifier: Apache-2.0
#include "messages/endpoints.hpp"

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

LocalityPtr locality(std::string zone, std::vector<std::string> addresses) {
  auto made = std::make_shared<Locality>();
  made->name.zone = std::move(zone);
  for (std::string& address : addresses)
    made->endpoints.push_back({{Address(std::move(address))}, HealthStatus::kHealthy, 1});
  return made;
}

Endpoints two_priorities() {
  return {{{{locality("a", {"10.0.0.1:80", "10.0.0.2:80"}), locality("b", {"10.0.1.1:80"})}},
           {{locality("c", {"10.0.2.1:80"})}}},
          {{"overload", 1'000}}};
}

TEST_CASE("endpoints: are equal by content, not by pointer", "[messages][endpoints]") {
  const Endpoints left = two_priorities();
  CHECK(left == two_priorities());
  CHECK(left == left);
}

TEST_CASE("endpoints: differ in anything that matters", "[messages][endpoints]") {
  const Endpoints original = two_priorities();
  Endpoints changed = original;

  SECTION("an address") {
    changed.priorities[1].localities[0] = locality("c", {"10.0.2.2:80"});
  }
  SECTION("a health status") {
    Locality sick = *original.priorities[0].localities[1];
    sick.endpoints[0].health = HealthStatus::kDraining;
    changed.priorities[0].localities[1] = std::make_shared<Locality>(sick);
  }
  SECTION("a weight") {
    Locality heavy = *original.priorities[0].localities[0];
    heavy.weight = 2;
    changed.priorities[0].localities[0] = std::make_shared<Locality>(heavy);
  }
  SECTION("the order of priorities") {
    std::swap(changed.priorities[0], changed.priorities[1]);
  }
  SECTION("a priority less") {
    changed.priorities.pop_back();
  }
  SECTION("a locality less") {
    changed.priorities[0].localities.pop_back();
  }
  SECTION("a drop") {
    changed.drops[0].drop_per_million = 2'000;
  }

  CHECK_FALSE(changed == original);
}

TEST_CASE("endpoints: are counted over all priorities", "[messages][endpoints]") {
  CHECK(count_endpoints(two_priorities()) == 4);
  CHECK(count_endpoints({}) == 0);
}

TEST_CASE("endpoints: a locality is written as gRPC writes it", "[messages][endpoints][A78]") {
  CHECK(to_string(LocalityName{"eu", "eu-1", "rack 4"}) ==
        "{region=\"eu\", zone=\"eu-1\", sub_zone=\"rack 4\"}");
}

TEST_CASE("endpoints: a zone is the caller's if region and zone are", "[messages][endpoints]") {
  const LocalityName caller{"eu", "eu-1", "rack 4"};
  CHECK(zone_of({"eu", "eu-1", "rack 4"}, caller) == CallZone::kOwn);
  CHECK(zone_of({"eu", "eu-1", ""}, caller) == CallZone::kOwn);
  CHECK(zone_of({"eu", "eu-2", "rack 4"}, caller) == CallZone::kOther);
  CHECK(zone_of({"us", "eu-1", "rack 4"}, caller) == CallZone::kOther);
  CHECK(zone_of({"eu", "", ""}, caller) == CallZone::kUnknown);
  CHECK(zone_of({"eu", "eu-1", ""}, {"eu", "", ""}) == CallZone::kUnknown);
}

TEST_CASE("connectivity: states and health have their words", "[messages][connectivity]") {
  CHECK(to_string(ConnectivityState::kIdle) == "IDLE");
  CHECK(to_string(ConnectivityState::kConnecting) == "CONNECTING");
  CHECK(to_string(ConnectivityState::kReady) == "READY");
  CHECK(to_string(ConnectivityState::kTransientFailure) == "TRANSIENT_FAILURE");
  CHECK(to_string(HealthStatus::kUnknown) == "UNKNOWN");
  CHECK(to_string(HealthStatus::kDegraded) == "DEGRADED");
}

TEST_CASE("connectivity: a set of health statuses holds what was put in",
          "[messages][connectivity]") {
  constexpr HealthStatusSet set{HealthStatus::kUnknown, HealthStatus::kDraining};
  CHECK(set.contains(HealthStatus::kUnknown));
  CHECK(set.contains(HealthStatus::kDraining));
  CHECK_FALSE(set.contains(HealthStatus::kHealthy));
  CHECK_FALSE(set.empty());
  CHECK(HealthStatusSet{}.empty());
  CHECK(set == HealthStatusSet{HealthStatus::kDraining, HealthStatus::kUnknown});
}

}  // namespace
}  // namespace signalbox
