// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/override_host.hpp"

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/session/seats.hpp"
#include "lb/session/session_args.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace override_host_test {

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

const HealthStatusSet kUsual{HealthStatus::kUnknown, HealthStatus::kHealthy};
const HealthStatusSet kAlsoDraining{
    HealthStatus::kUnknown, HealthStatus::kHealthy, HealthStatus::kDraining};

class DeafTarget final : public AskTarget {
 public:
  void tell(const PickAsk& /*ask*/) const override {}
};

PolicyContext context(std::pmr::memory_resource* session_memory) {
  PolicyContext made;
  made.asks = std::make_shared<const DeafTarget>();
  made.options.session_memory = session_memory;
  return made;
}

/// Counts memory that is allocated and not freed.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  std::size_t pieces = 0;
  std::size_t bytes = 0;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    ++pieces;
    bytes += size;
    return std::pmr::new_delete_resource()->allocate(size, alignment);
  }

  void do_deallocate(void* piece, std::size_t size, std::size_t alignment) override {
    --pieces;
    bytes -= size;
    std::pmr::new_delete_resource()->deallocate(piece, size, alignment);
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

/// override_host over one cluster, written as the texts of XdsWorld.
struct Fixture {
  explicit Fixture(std::pmr::memory_resource* session_memory = std::pmr::get_default_resource())
      : policy(make_override_host(context(session_memory))) {}

  XdsWorld world;
  PolicyHarness policy;
  HealthStatusSet allowed = kUsual;
  Duration idle_timeout = 1min;
  bool sessions = true;
  EndpointsPtr endpoints;  ///< The endpoints of the last name().

  Texts update(const XdsWorld::Priorities& priorities) {
    name(priorities);
    return update();
  }

  void name(const XdsWorld::Priorities& priorities) {
    world.eds("c", priorities);
    const auto config = world.config();
    const auto& leaf = std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children);
    endpoints = leaf.endpoints;
  }

  Texts update() {
    static const LbConfigPtr child = make_lb_config(RoundRobinConfig{});
    const OverrideHostConfig own{ClusterName("c"), child, idle_timeout, allowed, sessions};
    return policy.update(make_lb_config(own), nullptr, endpoints);
  }

  Texts tell(const std::string& address, ConnectivityState state) {
    SubchannelStateChanged told{Address(address), state, true, absl::OkStatus(), nullptr};
    if (state == kReady) told.connection = std::make_shared<const Connection>(Address(address));
    return policy.step(told);
  }

  Texts ask(const std::string& address, PickAsk::Kind kind = PickAsk::Kind::kCreate) {
    return policy.step(PickAsked{{kind, Address(address)}});
  }

  SessionMarksPtr kept() const {
    SessionMarksPtr last;
    for (const LbEffect& effect : policy.effects()) {
      if (const auto* order = std::get_if<KeepSessions>(&effect)) last = order->marks;
    }
    return last;
  }

  EndpointsPtr given() const {
    EndpointsPtr last;
    for (const LbEffect& effect : policy.effects()) {
      if (const auto* order = std::get_if<UpdateChild>(&effect)) last = order->update.endpoints;
      if (const auto* order = std::get_if<StartChild>(&effect)) last = order->update.endpoints;
    }
    return last;
  }

  std::string visit(const std::string& cookie) const {
    const SessionArgs session{.hosts = cookie, .now = Instant(1h)};
    PickArgs args;
    args.session = &session;
    return to_text(policy.published()->picker->pick(args));
  }
};

}  // namespace

TEST_CASE("override_host: where no call can be of a session it does nothing",
          "[lb][override_host][A55-25]") {
  Fixture fixture;
  fixture.sessions = false;
  CHECK(fixture.update({"x:a,b"}) == Texts{"start child", "publish CONNECTING"});
  const PickerPtr own = named_picker("child");
  fixture.policy.step(ChildStateChanged{ChildName("child"), kReady, {}, own});
  CHECK(fixture.policy.published()->picker == own);
  CHECK(fixture.tell("a", kReady).empty());
  CHECK(fixture.ask("a").empty());
  SECTION("from then on they are kept, and no longer when it is off again") {
    fixture.sessions = true;
    CHECK(fixture.update({"x:a,b"}) == Texts{"keep-sessions 2", "update child", "publish READY"});
    CHECK(fixture.policy.published()->picker != own);
    fixture.sessions = false;
    CHECK(fixture.update({"x:a,b"}) == Texts{"keep-sessions 0", "update child", "publish READY"});
    CHECK(fixture.policy.published()->picker == own);
    CHECK(fixture.update({"x:a,b"}) == Texts{"update child"});
  }
}

TEST_CASE("override_host: what calls of sessions touch stands where the options say",
          "[lb][override_host]") {
  CountedMemory memory;
  {
    Fixture fixture(&memory);
    fixture.update({"x:a,b,c"});
    CHECK(memory.pieces == 3 + 1);  // Three marks, and one piece for all seats.
    CHECK(memory.bytes >= 3 * (sizeof(SessionMark) + sizeof(Seat)));
    fixture.policy.step(ChildStateChanged{ChildName("child"), kReady, {}, named_picker("child")});
    fixture.tell("a", kReady);
    fixture.policy.step(RebuildDue{});
    CHECK(fixture.visit("a") == "complete a");
    CHECK(memory.pieces >= 3 + 1);
    CHECK(fixture.policy.step(RebuildDue{}).empty());
  }
  CHECK(memory.pieces == 0);
}

TEST_CASE("override_host: whom sessions may stay on is kept for them",
          "[lb][override_host][A75-24][A55-27][A55-30][A55-31]") {
  Fixture fixture;
  SECTION("DRAINING endpoints not, unless the configuration says so") {
    CHECK(fixture.update({"x:a,b! y:c", "z:d"}).front() == "keep-sessions 3");
    CHECK_FALSE(fixture.kept()->contains(Address("b")));
    fixture.allowed = kAlsoDraining;
    CHECK(fixture.update({"x:a,b! y:c", "z:d"}).front() == "keep-sessions 4");
    CHECK(fixture.kept()->at(Address("b")).draining);
    CHECK_FALSE(fixture.kept()->at(Address("a")).draining);
  }
  SECTION("an endpoint that begins to drain keeps its mark") {
    fixture.allowed = kAlsoDraining;
    fixture.update({"x:a,b"});
    const SessionMarkPtr before = fixture.kept()->at(Address("b")).mark;
    CHECK(fixture.update({"x:a,b!"}).front() == "keep-sessions 2");
    CHECK(fixture.kept()->at(Address("b")).mark == before);
  }
  SECTION("nobody, where no health is allowed") {
    fixture.allowed = {};
    CHECK(fixture.update({"x:a"}).front() == "keep-sessions 0");
    fixture.tell("a", kReady);
    CHECK(fixture.ask("a").empty());
  }
  SECTION("what is the same is not said again") {
    fixture.update({"x:a,b"});
    CHECK(fixture.update({"x:a,b"}).front() == "update child");
    CHECK(fixture.update({"x:b,a"}).front() == "update child");
    fixture.idle_timeout = 2min;
    CHECK(fixture.update({"x:a,b"}).front() == "keep-sessions 2");
  }
}

TEST_CASE("override_host: who was set aside meanwhile is held only if that is told again",
          "[lb][override_host][A55-27][A75-47]") {
  Fixture fixture;
  fixture.update({"x:a,b"});
  fixture.policy.child("child", kFailure);
  fixture.tell("a", kReady);
  fixture.policy.step(RebuildDue{});
  REQUIRE(fixture.visit("a") == "complete a");
  fixture.allowed = {};
  fixture.update({"x:a,b"});
  SECTION("what was known before") {}
  SECTION("what is told of it meanwhile") {
    CHECK(fixture.tell("a", kReady).empty());
    CHECK(fixture.policy.step(SubchannelGone{Address("b")}).empty());
  }
  SECTION("what calls ask for it meanwhile") {
    CHECK(fixture.ask("a").empty());
    CHECK(fixture.ask("a", PickAsk::Kind::kConnect).empty());
  }
  fixture.allowed = kUsual;
  fixture.update({"x:a,b"});
  CHECK(fixture.visit("a") == "queue");
  CHECK(fixture.ask("a") == Texts{"acquire a", "connect a"});
}

TEST_CASE("override_host: its child gets those that do not drain, and counts the others",
          "[lb][override_host][A55-29]") {
  Fixture fixture;
  const auto addresses_of = [](const std::vector<LocalityPtr>& localities) {
    Texts addresses;
    for (const LocalityPtr& locality : localities) {
      for (const Endpoint& endpoint : locality->endpoints)
        addresses.push_back(endpoint.addresses.front().str());
    }
    return addresses;
  };
  fixture.update({"x:a,b y:c"});
  CHECK(fixture.given() == fixture.endpoints);  // The same object.
  fixture.update({"x:a,b! y:c"});
  const Priority& priority = fixture.given()->priorities.at(0);
  REQUIRE(priority.localities.size() == 2);
  CHECK(addresses_of(priority.localities) == Texts{"a", "c"});
  CHECK(addresses_of(priority.unhealthy) == Texts{"b"});
  // Unchanged localities keep their pointers through further updates.
  const std::vector<LocalityPtr> before = priority.localities;
  for (int i = 0; i < 3; ++i) {
    fixture.update();
    CHECK(fixture.given()->priorities.at(0).localities == before);
  }
}

TEST_CASE("override_host: what is told of its hosts is in the next picker, one for each burst",
          "[lb][override_host][A75-39][A55-32]") {
  Fixture fixture;
  fixture.update({"x:a,b"});
  fixture.policy.child("child", kFailure);
  CHECK(fixture.visit("a") == "queue");
  CHECK(fixture.tell("a", kConnecting) == Texts{"rebuild-soon"});
  CHECK(fixture.tell("a", kReady).empty());
  CHECK(fixture.tell("b", kConnecting).empty());
  CHECK(fixture.tell("stranger", kReady).empty());
  CHECK(fixture.policy.step(RebuildDue{}) == Texts{"publish TRANSIENT_FAILURE"});
  CHECK(fixture.visit("a") == "complete a");
  SECTION("the newest connection of an address takes the place of an older one") {
    const auto newer = std::make_shared<const Connection>(Address("a"));
    fixture.policy.step(
        SubchannelStateChanged{Address("a"), kReady, true, absl::OkStatus(), newer});
    fixture.policy.step(RebuildDue{});
    const SessionArgs session{.hosts = "a"};
    PickArgs args;
    args.session = &session;
    const PickResult result = fixture.policy.published()->picker->pick(args);
    CHECK(std::get<Complete>(result.outcome).connection == newer.get());
  }
  SECTION("an address that nobody holds any more is to be had again") {
    CHECK(fixture.policy.step(SubchannelGone{Address("a")}) == Texts{"rebuild-soon"});
    fixture.policy.step(RebuildDue{});
    CHECK(fixture.visit("a") == "queue");
    CHECK(fixture.ask("a") == Texts{"acquire a", "connect a"});
  }
  SECTION("an update keeps what is known, and publishes at once") {
    CHECK(fixture.update({"x:c,a"}) ==
          Texts{"keep-sessions 2", "update child", "publish TRANSIENT_FAILURE"});
    CHECK(fixture.visit("a") == "complete a");
    CHECK(fixture.visit("b") == "fail UNAVAILABLE: child TRANSIENT_FAILURE");
  }
  SECTION("the child's next picker is asked where it is the child's turn") {
    CHECK(fixture.policy.child("child", kReady) == Texts{"publish READY"});
    const PickerPtr shown = fixture.policy.published()->picker;
    const PickerPtr again = named_picker("child READY");
    for (int i = 0; i < 2; ++i) {  // The same child picker is published once.
      const Texts told =
          fixture.policy.step(ChildStateChanged{ChildName("child"), kReady, {}, again});
      CHECK(told == (i == 0 ? Texts{"publish READY"} : Texts{}));
    }
    CHECK(fixture.policy.published()->picker != shown);
    CHECK(fixture.visit("a") == "complete a");
    CHECK(fixture.visit("x") == "fail UNAVAILABLE: child READY");
  }
  SECTION("whatever is said, calls may ask again") {
    fixture.tell("b", kIdle);
    fixture.policy.step(RebuildDue{});
    const PickerPtr before = fixture.policy.published()->picker;
    fixture.tell("b", kIdle);
    fixture.policy.step(RebuildDue{});
    CHECK(fixture.policy.published()->picker != before);
  }
}

TEST_CASE("override_host: what a call waits for is created, and connected",
          "[lb][override_host][A75-37][A75-38][A75-45][A75-47]") {
  Fixture fixture;
  fixture.update({"x:a,b! y:c"});
  CHECK(fixture.ask("a") == Texts{"acquire a", "connect a"});
  SECTION("once more is harmless: the map knows that it is held") {
    CHECK(fixture.ask("a") == Texts{"acquire a", "connect a"});
  }
  SECTION("of one that is held by now only the connection is wanted") {
    fixture.tell("a", kIdle);
    CHECK(fixture.ask("a") == Texts{"connect a"});
    fixture.tell("a", kConnecting);
    CHECK(fixture.ask("a", PickAsk::Kind::kConnect).empty());
  }
  SECTION("one that has gone is not") {
    CHECK(fixture.ask("b").empty());
    CHECK(fixture.ask("nobody").empty());
    fixture.update({"y:c"});
    CHECK(fixture.ask("a").empty());
  }
}

}  // namespace override_host_test
