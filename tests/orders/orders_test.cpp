// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/orders/explore.hpp"

using namespace signalbox::orders;

namespace {

using Texts = std::vector<std::string>;

Story with(const char* name, Plant plant) {
  Story story = *story_named(name);
  story.plant = plant;
  return story;
}

Report explored(const Story& story, std::size_t depth = 0) {
  Report report = explore(story, {.depth = depth});
  INFO(story.name << ": " << to_text(report));
  CHECK(report.broken == "");
  return report;
}

// The first eight steps of the shortest way to a cluster that goes.
const Texts kBeginning{"configuration 1 reaches the channel: calls go to cluster a",
                       "the root takes generation 1: a",
                       "the channel takes the state CONNECTING of root, generation 1",
                       "configuration 2 reaches the channel: calls go to cluster b",
                       "the root takes generation 2: a (retiring), b",
                       "the channel hears that no call reads snapshot 0 any more",
                       "call 1 reads snapshot 1",
                       "the channel takes the state CONNECTING of root, generation 2"};

Texts after_beginning(const Texts& rest) {
  Texts all = kBeginning;
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace

TEST_CASE("orders: one configuration and one call, in all orders to the end",
          "[orders][A31-7][A31-13][A31-15]") {
  const Report report = explored(with("one", Plant::kNothing));
  CHECK(report.is_complete);
  CHECK(report.rests > 0);
}

TEST_CASE("orders: a cluster gets another endpoint during a call, in all orders to the end",
          "[orders][A31-7][A31-13][A31-15]") {
  const Report report = explored(with("endpoint", Plant::kNothing));
  CHECK(report.is_complete);
  CHECK(report.rests > 0);
}

TEST_CASE("orders: a cluster goes while a call uses it, in all orders of 12 steps",
          "[orders][A31-7][A31-13][A31-14][A31-15][A31-18]") {
  const Report report = explored(with("leaves", Plant::kNothing), 12);
  CHECK(report.depth == 12);
  CHECK(report.states > 10'000);
}

TEST_CASE("orders: a cluster goes and comes again during two calls, in all orders of 11 steps",
          "[orders][A31-7][A31-13][A31-14][A31-15][A31-18]") {
  CHECK(explored(with("returns", Plant::kNothing), 11).depth == 11);
}

TEST_CASE("orders: a leaf and its subchannel map have mailboxes, too, in all orders of 14 steps",
          "[orders][A31-7]") {
  CHECK(explored(with("maps", Plant::kNothing), 14).depth == 14);
}

TEST_CASE("orders: an answer that is taken for a newer one is found in four steps",
          "[orders][A31-7]") {
  const Report report = explore(with("leaves", Plant::kAnswerIsTakenForNewer), {});
  CHECK(report.broken ==
        "snapshot 1 routes to cluster b, which its picker does not know [A31-7, A31-18]");
  CHECK(report.trace == Texts{"configuration 1 reaches the channel: calls go to cluster a",
                              "the root takes generation 1: a",
                              "configuration 2 reaches the channel: calls go to cluster b",
                              "the channel takes the state CONNECTING of root, generation 1"});
}

TEST_CASE("orders: a grace that ignores readers is found in ten steps", "[orders][A31-14]") {
  const Report report = explore(with("leaves", Plant::kGraceIgnoresReaders), {});
  CHECK(report.broken ==
        "snapshot 1 can be read and routes to cluster a, which has no policy any more [A31-14]");
  CHECK(report.trace == after_beginning({"the channel hears that no call reads snapshot 1 any more",
                                         "the root takes generation 3: b"}));
}

TEST_CASE("orders: a use that ends with the pick is found in eleven steps", "[orders][A31-15]") {
  const Report report = explore(with("leaves", Plant::kUseEndsWithThePick), {});
  CHECK(report.broken == "a call uses cluster a, which has no policy any more [A31-15]");
  CHECK(report.trace == after_beginning({"call 1 takes a use of cluster a",
                                         "the channel hears that no call reads snapshot 1 any more",
                                         "the root takes generation 3: b"}));
}

TEST_CASE("orders: a use that is never released is found at the end of the call",
          "[orders][A31-13]") {
  const Report report = explore(with("calls", Plant::kUseIsNeverReleased), {});
  CHECK(report.broken == "cluster a has 1 uses, and 0 calls hold it [A31-13]");
  REQUIRE_FALSE(report.trace.empty());
  CHECK(report.trace.back() == "call 1 ends, and releases cluster a");
}

TEST_CASE("orders: a report of READY that is lost is found at rest", "[orders]") {
  const Report report = explore(with("one", Plant::kReadyIsLost), {});
  CHECK(report.broken == "a call waits for ever [A31-17]");
}
