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

// All that the search of a correct product finds, as README.md and the night read it.
std::string found(const char* name, std::size_t depth = 0) {
  return to_text(explore(with(name, Plant::kNothing), {.depth = depth}));
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

// So many steps of the beginning, and then the others.
Texts after_beginning(std::ptrdiff_t steps, const Texts& rest) {
  Texts all(kBeginning.begin(), kBeginning.begin() + steps);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace

TEST_CASE("orders: one configuration and one call, in all orders to the end",
          "[orders][A31-7][A31-13][A31-15]") {
  CHECK(found("one") == "1723 states, depth 23, 4697 transitions, 15 at rest, complete\n");
}

TEST_CASE("orders: a cluster gets another endpoint during a call, in all orders to the end",
          "[orders][A31-7][A31-13][A31-15]") {
  CHECK(found("endpoint") == "8149 states, depth 23, 21600 transitions, 45 at rest, complete\n");
}

TEST_CASE("orders: a cluster goes while a call uses it, in all orders of 12 steps",
          "[orders][A31-7][A31-13][A31-14][A31-15][A31-18]") {
  CHECK(found("leaves", 12) == "14459 states, depth 12, 34775 transitions, 0 at rest\n");
}

TEST_CASE("orders: a cluster goes and comes again during two calls, in all orders of 11 steps",
          "[orders][A31-7][A31-13][A31-14][A31-15][A31-18]") {
  CHECK(found("returns", 11) == "13779 states, depth 11, 32518 transitions, 0 at rest\n");
}

TEST_CASE("orders: a leaf and its subchannel map have mailboxes, too, in all orders of 14 steps",
          "[orders][A31-7]") {
  CHECK(found("maps", 14) == "19656 states, depth 14, 57559 transitions, 0 at rest\n");
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
  CHECK(report.trace == after_beginning(8,
                                        {"the channel hears that no call reads snapshot 1 any more",
                                         "the root takes generation 3: b"}));
}

TEST_CASE("orders: a use that ends with the pick is found in eleven steps", "[orders][A31-15]") {
  const Report report = explore(with("leaves", Plant::kUseEndsWithThePick), {});
  CHECK(report.broken == "a call uses cluster a, which has no policy any more [A31-15]");
  CHECK(report.trace == after_beginning(8,
                                        {"call 1 takes a use of cluster a",
                                         "the channel hears that no call reads snapshot 1 any more",
                                         "the root takes generation 3: b"}));
}

TEST_CASE("orders: a use that is never released is found at the end of the call",
          "[orders][A31-13]") {
  const Report report = explore(with("calls", Plant::kUseIsNeverReleased), {});
  CHECK(report.broken == "cluster a has 1 uses, and 0 calls hold it [A31-13]");
  CHECK(report.trace == after_beginning(3,
                                        {"endpoint a1 connects",
                                         "the channel takes the state READY of root, generation 1",
                                         "call 1 reads snapshot 2",
                                         "call 1 takes a use of cluster a",
                                         "call 1 ends, and releases cluster a"}));
}

TEST_CASE("orders: a report of READY that is lost is found at rest", "[orders]") {
  const Report report = explore(with("one", Plant::kReadyIsLost), {});
  CHECK(report.broken == "a call waits for ever [A31-17]");
  CHECK(report.trace == after_beginning(3,
                                        {"cds a takes generation 1",
                                         "the root takes the state CONNECTING of a, generation 1",
                                         "the root takes the state CONNECTING of a, generation 1",
                                         "the root hears that a has applied 1",
                                         "endpoint a1 connects",
                                         "the root takes the state READY of a, generation 1",
                                         "the channel takes the state READY of root, generation 1",
                                         "the root ends a burst of reports",
                                         "the channel hears that no call reads snapshot 0 any more",
                                         "call 1 reads snapshot 1",
                                         "call 1 takes a use of cluster a"}));
}

TEST_CASE("orders: a call that is dropped is found in five steps", "[orders]") {
  const Report report = explore(with("leaves", Plant::kCallIsDropped), {});
  CHECK(report.broken == "thrown: a call to cluster a is dropped: no such cluster: unknown");
  CHECK(report.trace ==
        after_beginning(3, {"call 1 reads snapshot 1", "call 1 takes a use of cluster a"}));
}

TEST_CASE("orders: other faults are found by the rules that they break",
          "[orders][A31-14][A31-15]") {
  struct Row {
    Plant plant;
    const char* story;
    std::size_t calls;
    std::size_t steps;
    const char* broken;
  };

  constexpr auto kLost = Plant::kLastConfigurationIsLost;
  const auto row = GENERATE(values<Row>({
      {Plant::kPickerForgets,
       "leaves",
       1,
       8,
       "a call uses cluster a, which the newest picker does not know [A31-15]"},
      {Plant::kReferencesAreCopied,
       "one",
       1,
       5,
       "a call uses cluster a by a reference that the channel does not watch [A31-15]"},
      {kLost, "one", 0, 1, "the last configuration is not the published one"},
      {kLost, "calls", 0, 9, "the last configuration is not the published one"},
      {kLost, "endpoint", 0, 9, "calls do not go to the endpoint of the last configuration"},
      {Plant::kGraceIsLost, "calls", 0, 12, "a cluster that nothing uses is in the tree [A31-14]"},
      {Plant::kWatcherForgetsNothing,
       "calls",
       0,
       15,
       "the watcher is told to keep a cluster that nothing uses"},
      {Plant::kAppliedIsLost,
       "endpoint",
       0,
       13,
       "the subchannels are not those of the last configuration"},
      {Plant::kAppliedIsLost, "one", 0, 12, "the newest generation was not applied everywhere"},
  }));
  CAPTURE(row.story, row.broken);
  Story story = with(row.story, row.plant);
  story.calls = row.calls;
  const Report report = explore(story, {});
  CHECK(report.broken == row.broken);
  CHECK(report.trace.size() == row.steps);
}

TEST_CASE("orders: a wrong publication is found in five steps", "[orders]") {
  struct Row {
    Plant plant;
    const char* broken;
  };

  const auto row = GENERATE(values<Row>({
      {Plant::kSequenceStays, "thrown: the sequence rises with each publication"},
      {Plant::kGenerationIsLost, "thrown: the generation of publications never falls"},
      {Plant::kRoutesAreLost, "thrown: a target that has had routes keeps routes"},
  }));
  CAPTURE(row.broken);
  const Report report = explore(with("calls", row.plant), {.depth = 5});
  CHECK(report.broken == row.broken);
  CHECK(
      report.trace ==
      after_beginning(
          3, {"endpoint a1 connects", "the channel takes the state READY of root, generation 1"}));
}

TEST_CASE("orders: a search that ends at a number of states tells the depth that is complete",
          "[orders]") {
  const Story story = with("one", Plant::kNothing);
  const std::size_t of_five = explore(story, {.depth = 5}).states;
  CHECK(explore(story, {.states = of_five}).depth == 4);
  const Report report = explore(story, {.states = of_five + 1});
  CHECK(report.depth == 5);
  CHECK(report.states == of_five + 1);
  CHECK_FALSE(report.is_complete);
}

// The step that throws changes nothing, so the state behind it is one that was seen.
TEST_CASE("orders: a step that throws is found, whatever it throws", "[orders]") {
  const Report report = explore(with("calls", Plant::kPickAgainThrows), {});
  CHECK(report.broken == "thrown: planted");
  CHECK(report.trace == after_beginning(3,
                                        {"endpoint a1 connects",
                                         "call 1 reads snapshot 1",
                                         "the channel takes the state READY of root, generation 1",
                                         "call 1 takes a use of cluster a",
                                         "call 1 picks again in snapshot 2"}));
}

TEST_CASE("orders: a rule that throws is found", "[orders]") {
  Story story = with("one", Plant::kNothing);
  auto xds = std::make_shared<signalbox::XdsConfig>(*story.configurations.front().xds);
  auto routes = std::make_shared<signalbox::RouteConfig>(*xds->route_config);
  routes->virtual_hosts.front().routes.clear();
  xds->virtual_host = &routes->virtual_hosts.front();
  xds->route_config = std::move(routes);
  story.configurations.front().xds = std::move(xds);
  const Report report = explore(story, {});
  CHECK(report.broken == "thrown: the selector routes every call");
  CHECK(report.trace ==
        Texts{kBeginning[0],
              "the root takes generation 1: ",
              "the channel takes the state TRANSIENT_FAILURE of root, generation 1"});
}
