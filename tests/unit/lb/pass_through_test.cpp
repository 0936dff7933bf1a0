// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/pass_through.hpp"

#include <catch2/catch.hpp>

#include "lb/tree/override_host.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace pass_through_test {

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

LbConfigPtr round_robin() {
  static const LbConfigPtr config = make_lb_config(RoundRobinConfig{});
  return config;
}

EndpointsPtr endpoints_of(XdsWorld& world, const XdsWorld::Priorities& priorities) {
  world.eds("c", priorities);
  const auto config = world.config();
  return std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children).endpoints;
}

/// The endpoints in the last configuration of the child.
EndpointsPtr given(const PolicyHarness& policy) {
  EndpointsPtr last;
  for (const LbEffect& effect : policy.effects()) {
    if (const auto* start = std::get_if<StartChild>(&effect)) last = start->update.endpoints;
    if (const auto* update = std::get_if<UpdateChild>(&effect)) last = update->update.endpoints;
  }
  return last;
}

}  // namespace

TEST_CASE("pass-through: says what the child says", "[lb][A75-2]") {
  struct Row {
    const char* name;
    std::unique_ptr<Policy> (*make)(PolicyContext);
    LbConfigPtr config;
  };

  const auto row = GENERATE(values<Row>({
      {"override_host", make_override_host, make_lb_config(OverrideHostConfig{{}, round_robin()})},
  }));
  DYNAMIC_SECTION(row.name) {
    PolicyHarness policy{row.make({})};
    CHECK(policy.update(row.config) == Texts{"start child", "publish CONNECTING"});
    CHECK(std::get<StartChild>(policy.effects().front()).update.config == round_robin());
    CHECK(policy.child("child", kReady) == Texts{"publish READY"});
    CHECK(policy.pick() == "fail UNAVAILABLE: child READY");
    CHECK(policy.child("child", kFailure) == Texts{"publish TRANSIENT_FAILURE"});
    CHECK(policy.published()->status == absl::UnavailableError("child failed"));
    CHECK(policy.applied("child") == Texts{"applied 1"});
    CHECK(policy.step(IdleExitRequested{}) == Texts{"exit-idle child"});
    CHECK(policy.update(row.config) == Texts{"update child"});
    CHECK(policy.child("stranger", kReady).empty());
  }
}

TEST_CASE("override_host: the child never sees a DRAINING endpoint",
          "[lb][override_host][A55-29]") {
  XdsWorld world;
  const auto config = make_lb_config(OverrideHostConfig{{}, make_lb_config(RoundRobinConfig{})});
  PolicyHarness policy{make_override_host({})};
  policy.update(config, nullptr, endpoints_of(world, {"x:a,b! y:c", "z:d!"}));
  const EndpointsPtr first = given(policy);
  REQUIRE(first->priorities.size() == 2);
  const auto& localities = first->priorities[0].localities;
  REQUIRE(localities.size() == 2);
  REQUIRE(localities[0]->endpoints.size() == 1);
  CHECK(localities[0]->endpoints[0].addresses.front() == Address("a"));
  CHECK(localities[1]->endpoints.size() == 1);
  CHECK(first->priorities[1].localities[0]->endpoints.empty());

  SECTION("and a locality that did not change is the same again") {
    policy.update(config, nullptr, endpoints_of(world, {"x:a,b! y:c,e", "z:d!"}));
    const EndpointsPtr second = given(policy);
    CHECK(second->priorities[0].localities[0] == first->priorities[0].localities[0]);
    CHECK(second->priorities[0].localities[1] != first->priorities[0].localities[1]);
    CHECK(second->priorities[1].localities[0] == first->priorities[1].localities[0]);
  }
  SECTION("and where nobody is draining nothing is copied") {
    const EndpointsPtr all = endpoints_of(world, {"x:a"});
    policy.update(config, nullptr, all);
    CHECK(given(policy) == all);
  }
}

}  // namespace pass_through_test
