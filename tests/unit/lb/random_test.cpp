// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/random.hpp"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/independent_draws.hpp"
#include "tests/support/step_log.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

class RandomHarness : public LeafHarness {
 public:
  explicit RandomHarness(const std::vector<std::string>& endpoints)
      : LeafHarness(make_leaf(RandomConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr})) {
    update(endpoints, make_lb_config(RandomConfig{}));
  }

  std::string where(const PickArgs& args) const {
    return std::get<Complete>(published.back().picker->pick(args).outcome)
        .connection->address()
        .str();
  }
};

}  // namespace

TEST_CASE("random: all READY endpoints get even shares, by the seed alone", "[lb][random]") {
  RandomHarness random({"a", "b", "c", "d"});
  CHECK(random.pick() == "queue");
  for (const std::string name : {"a", "b", "d"})
    random.ready(name);
  random.fail("c");
  random.step(RebuildDue{});
  std::map<std::string, int> calls;
  for (std::uint64_t seed = 0; seed < 30'000; ++seed)
    ++calls[random.where({.seed = seed})];
  CHECK(calls.size() == 3);
  for (const auto& [name, count] : calls) {
    CAPTURE(name);
    CHECK(count > 9'700);
    CHECK(count < 10'300);
  }
  CHECK(random.where({.seed = 42}) == random.where({.seed = 42}));
}

TEST_CASE("random: a retry passes over the endpoints that it has tried", "[lb][random]") {
  RandomHarness random({"a", "b"});
  random.ready("a");
  random.ready("b");
  random.step(RebuildDue{});
  const TriedAddresses tried{Address{"a"}};
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    REQUIRE(random.where({.seed = seed, .tried = &tried}) == "b");
}

TEST_CASE("random: the explanation names the endpoint that the pick draws", "[lb][random]") {
  RandomHarness random({"a", "b", "c"});
  for (const std::string name : {"a", "b", "c"})
    random.ready(name);
  random.step(RebuildDue{});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto steps = testing::steps_of(random.published.back().picker, {.seed = seed});
    REQUIRE(steps.size() == 1);
    const std::string drawn = random.where({.seed = seed});
    CHECK(steps[0] == absl::StrCat("random: ",
                                   drawn,
                                   "; drawn by the call's seed: ",
                                   drawn[0] - 'a' + 1,
                                   " of 3 READY; CDS"));
  }
}

TEST_CASE("random: the endpoint is drawn independently of the call's other draws", "[lb][random]") {
  RandomHarness random({"a", "b"});
  random.ready("a");
  random.ready("b");
  random.step(RebuildDue{});
  test::check_independent(Salt::kEndpoint, 0.5, [&](std::uint64_t seed) {
    return random.where({.seed = seed}) == "a";
  });
}

TEST_CASE("random: the same endpoints again need no new picker", "[lb][random]") {
  RandomHarness random({"a"});
  random.ready("a");
  random.step(RebuildDue{});
  const std::size_t pickers = random.published.size();
  random.update({"a"}, make_lb_config(RandomConfig{}));
  random.step(RebuildDue{});
  CHECK(random.published.size() == pickers);
}

TEST_CASE("random: when all endpoints fail, calls fail", "[lb][random]") {
  RandomHarness random({"a"});
  random.fail("a");
  CHECK(random.pick() == "fail: random: the only endpoint failed; last error: a: refused by a");
}

}  // namespace signalbox::lb
