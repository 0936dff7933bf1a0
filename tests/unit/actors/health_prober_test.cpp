// SPDX-License-Identifier: Apache-2.0
//
// The turns of probes: which probe begins next when the limit of probes under way is reached.
#include "actors/io/health_prober.hpp"

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/fake_prober.hpp"

namespace signalbox::actors::health_prober_test {
namespace {

struct World {
  std::unique_ptr<HealthProber::Probe> prepare(const std::string& address) const {
    return by_turns->prepare({{Address(address)}, ClusterName("c")}, HealthCheck{});
  }

  void begin(HealthProber::Probe& probe, const std::string& name) {
    probe.begin([this, name](const ProbeAnswer& answer) {
      answers.push_back(name + (answer.delayed ? " delayed" : ""));
    });
  }

  std::shared_ptr<test::FakeProber> fake = std::make_shared<test::FakeProber>();
  std::shared_ptr<HealthProber> by_turns = make_prober_with_turns(fake, 2);
  std::vector<std::string> answers;
};

TEST_CASE("health_prober: so many probes are under way, the others wait for their turn",
          "[actors][health_prober][limits]") {
  World world;
  std::vector<std::unique_ptr<HealthProber::Probe>> probes;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    probes.push_back(world.prepare(name));
    world.begin(*probes.back(), name);
  }
  CHECK(world.fake->begun == 2);
  world.fake->answer("b", ProbeOutcome::kPassed);
  CHECK(world.fake->under_way("c") == 1);
  CHECK(world.fake->begun == 3);

  SECTION("in their order, and they say that they waited") {
    for (const char* name : {"a", "c", "d", "e"})
      world.fake->answer(name, ProbeOutcome::kFailed);
    CHECK(world.answers ==
          std::vector<std::string>{"b", "a", "c delayed", "d delayed", "e delayed"});
    // The same probe begins again at once, because no other probe waits.
    world.begin(*probes[0], "a");
    CHECK(world.fake->begun == 6);
    world.fake->answer("a", ProbeOutcome::kPassed);
    CHECK(world.answers.back() == "a");
  }
  SECTION("one that is given up while it waits is passed over") {
    probes.erase(probes.begin() + 3);
    world.fake->answer("a", ProbeOutcome::kPassed);
    CHECK(world.fake->under_way("e") == 1);
  }
  SECTION("one that is given up while it is under way leaves its turn to the next") {
    probes.erase(probes.begin());
    CHECK(world.fake->under_way("d") == 1);
    CHECK(world.answers == std::vector<std::string>{"b"});
  }
  SECTION("all of them may go") {
    probes.clear();
    const auto next = world.prepare("f");
    world.begin(*next, "f");
    CHECK(world.fake->under_way("f") == 1);
  }
}

}  // namespace
}  // namespace signalbox::actors::health_prober_test
