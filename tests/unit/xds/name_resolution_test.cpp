// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/name_resolution.hpp"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

// The resolution of one name, with its effects as lines of text: "resolve", "timer", "cancel".
class Name {
 public:
  Lines start() {
    return run([&](auto& effects) { core_.start(effects); });
  }

  Lines stop() {
    return run([&](auto& effects) { core_.stop(effects); });
  }

  Lines answer(absl::StatusOr<std::vector<Address>> addresses) {
    return run([&](auto& effects) {
      core_.resolved({DnsName{"h:1"}, std::move(addresses)}, now, effects);
    });
  }

  Lines succeed(const char* address = "10.0.0.1:1") {
    return answer(std::vector<Address>{Address(address)});
  }

  Lines fail() { return answer(absl::UnavailableError("no such host")); }

  Lines ask_again() {
    return run([&](auto& effects) { core_.ask_again(now, effects); });
  }

  /// Lets the timer elapse that was started last. The timer fires even if it was cancelled.
  Lines elapse() {
    now += timer.delay;
    return fire(timer.timer);
  }

  Lines fire(const TimerId& id) {
    return run([&](auto& effects) { core_.timer_fired(id, effects); });
  }

  bool has(const char* address) const {
    const EndpointsPtr& known = core_.endpoints();
    return known != nullptr &&
           known->priorities[0].localities[0]->endpoints[0].addresses[0].str() == address;
  }

  const NameResolution& core() const { return core_; }

  Instant now{1h};
  StartTimer timer;

 private:
  template <typename Do>
  Lines run(Do what) {
    DependencyEffects effects;
    what(effects);
    Lines lines;
    for (const DependencyEffect& effect : effects) {
      if (std::holds_alternative<ResolveName>(effect)) lines.emplace_back("resolve");
      if (std::holds_alternative<CancelTimer>(effect)) lines.emplace_back("cancel");
      if (const auto* start = std::get_if<StartTimer>(&effect)) {
        timer = *start;
        lines.emplace_back("timer");
      }
    }
    return lines;
  }

  // Without jitter the test knows the exact waits.
  NameResolution core_{DnsName{"h:1"}, {{1s, 1.6, 0.0, 120s}, 30s}, 1, 1};
};

}  // namespace

TEST_CASE("name resolution: a name is looked up at once, and rests when it has its answer",
          "[xds][dns][A37-20]") {
  Name name;
  CHECK(name.start() == Lines{"resolve"});
  CHECK_FALSE(name.core().answered());
  CHECK(name.core().endpoints() == nullptr);
  CHECK(name.succeed().empty());
  CHECK(name.core().answered());
  CHECK(name.has("10.0.0.1:1"));
  CHECK(name.core().error().empty());
}

TEST_CASE("name resolution: the name is the hostname of its endpoint", "[xds][dns][A81]") {
  Name name;
  name.start();
  name.succeed();
  CHECK(name.core().endpoints()->priorities[0].localities[0]->endpoints[0].hostname == "h:1");
}

TEST_CASE("name resolution: what it answers when it is asked again, by where it stands",
          "[xds][dns][A74]") {
  Name name;
  name.start();
  SECTION("looking: the answer is on its way") {
    CHECK(name.ask_again().empty());
  }
  SECTION("resting, past the interval: it looks") {
    name.succeed();
    name.now += 30s;
    CHECK(name.ask_again() == Lines{"resolve"});
    CHECK(name.ask_again().empty());
  }
  SECTION("resting, within the interval: it waits for the rest of it, however often it is asked") {
    name.succeed();
    name.now += 10s;
    CHECK(name.ask_again() == Lines{"timer"});
    CHECK(name.timer.delay == 20s);
    CHECK(name.ask_again().empty());
    CHECK(name.elapse() == Lines{"resolve"});
  }
  SECTION("backing off: the wait goes on") {
    name.fail();
    CHECK(name.ask_again().empty());
    CHECK(name.elapse() == Lines{"resolve"});
  }
}

TEST_CASE("name resolution: failures back off, up to a limit, and a success ends that",
          "[xds][dns][A37-23]") {
  Name name;
  name.start();
  Duration expected = 1s;
  for (int attempt = 0; attempt < 12; ++attempt) {
    CHECK(name.fail() == Lines{"timer"});
    const auto off = std::chrono::abs(name.timer.delay - expected);
    CHECK(off < 1ms);
    expected = std::min<Duration>(
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(expected) * 1.6), 120s);
    CHECK(name.elapse() == Lines{"resolve"});
  }
  name.succeed();
  name.now += 30s;
  name.ask_again();
  name.fail();
  CHECK(name.timer.delay == 1s);
}

TEST_CASE("name resolution: the last answer is kept, whatever comes after it",
          "[xds][dns][A37-23]") {
  Name name;
  name.start();
  name.succeed();
  const EndpointsPtr kept = name.core().endpoints();
  name.now += 30s;
  name.ask_again();

  struct Row {
    const char* when;
    absl::StatusOr<std::vector<Address>> answer;
    const char* error;
  };

  const auto row = GENERATE(values<Row>({
      {"an error",
       absl::UnavailableError("no such host"),
       "DNS resolution of h:1 failed: no such host"},
      {"an empty answer",
       std::vector<Address>(),
       "DNS resolution of h:1 failed: the name has no addresses"},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(name.answer(row.answer) == Lines{"timer"});
    CHECK(name.core().endpoints() == kept);
    CHECK(name.core().error() == row.error);
    name.elapse();
    name.succeed("10.0.0.2:1");
    CHECK(name.has("10.0.0.2:1"));
    CHECK(name.core().error().empty());
  }
}

TEST_CASE("name resolution: the same answer again is the same pointer", "[xds][dns][A74]") {
  Name name;
  name.start();
  name.succeed();
  const EndpointsPtr before = name.core().endpoints();
  name.now += 30s;
  name.ask_again();
  name.succeed();
  CHECK(name.core().endpoints() == before);
}

TEST_CASE("name resolution: a look-up that was begun for a former need answers this one",
          "[xds][dns][A37-15]") {
  Name name;
  name.start();
  name.fail();
  const TimerId waiting = name.timer.timer;
  CHECK(name.succeed() == Lines{"cancel"});  // The timer for another look-up.
  CHECK(name.has("10.0.0.1:1"));
  CHECK(name.fire(waiting).empty());
}

TEST_CASE("name resolution: stopped, it leaves no timer", "[xds][dns][A37-15]") {
  Name name;
  name.start();
  CHECK(name.stop().empty());
  name.fail();
  CHECK(name.stop() == Lines{"cancel"});
}

}  // namespace signalbox::xds
