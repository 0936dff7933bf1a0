// SPDX-License-Identifier: Apache-2.0
//
// What `signalbox replay` prints, and what `--diff` compares.
#include "tools/replay_report.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

using channel::TimelineEntry;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::vector<TimelineEntry> some_entries() {
  return {{milliseconds(1500), "target", "xds:///orders", "", "READY, ready, configuration 1"},
          {seconds(12), "priority", "xds:///orders", "shop", "priority 0 to priority 1 (failed)"}};
}

OrderedJson replay_output(const std::vector<TimelineEntry>& entries) {
  return {{"recorded", "2026-11-28T12:00:00.000Z"},
          {"events", 40},
          {"until_ns", 20'000'000'000},
          {"entries", entries_json(entries)}};
}

/// The difference to the file "other.json"; "equal", or the text of an error.
std::string difference(const std::vector<TimelineEntry>& entries, const std::string& other) {
  const auto found = first_difference(replay_output(entries), other, "other.json");
  if (!found.ok()) return std::string(found.status().message());
  return found->value_or("equal");
}

AddressStatus address_in(EndpointState state, absl::Status why = {}) {
  AddressStatus address;
  address.address = Address("10.0.0.1:80");
  address.state = state;
  address.reason = std::move(why);
  return address;
}

PriorityStatus priority_of(std::string name, std::optional<ConnectivityState> state) {
  PriorityStatus priority;
  priority.name = std::move(name);
  priority.started = state.has_value();
  priority.state = state.value_or(ConnectivityState::kIdle);
  return priority;
}

/// A target with one cluster of one priority.
RuntimeStatus some_status() {
  PriorityStatus priority = priority_of("child0", ConnectivityState::kReady);
  priority.localities.resize(1);
  priority.localities[0].endpoints.push_back({.addresses = {address_in(EndpointState::kReady)}});
  ClusterStatus cluster{.name = ClusterName("shop")};
  cluster.active = 0;
  cluster.priorities = {priority};
  RuntimeStatus status;
  TargetStatus& target = status.targets.emplace_back();
  target.name = "xds:///orders";
  target.state = ConnectivityState::kReady;
  target.ready = true;
  target.clusters = {cluster};
  return status;
}

}  // namespace

TEST_CASE("replay_report: a line has seconds, kind, subject and text", "[tools][replay]") {
  struct Row {
    const char* name;
    std::vector<TimelineEntry> entries;
    const char* text;
  };

  const auto row = GENERATE(values<Row>({
      {"nothing", {}, ""},
      {"columns are as wide as their longest subject",
       some_entries(),
       "     1.500  target    xds:///orders       READY, ready, configuration 1\n"
       "    12.000  priority  xds:///orders shop  priority 0 to priority 1 (failed)\n"},
      {"a kind is longer than its column",
       {{seconds(0), "a-long-kind", "t", "s", "x"}},
       "     0.000  a-long-kind  t s  x\n"},
      {"control characters and bytes that are no UTF-8 are escaped",
       {{seconds(3), "endpoint", "t", "c\t", "READY: \"no\"\n\xff"}},
       "     3.000  endpoint  t c\\t  READY: \"no\"\\n\\xff\n"},
      {"parts of a millisecond are rounded",
       {{nanoseconds(1'234'567'890), "target", "t", "", "x"}},
       "     1.235  target    t  x\n"},
      {"a recording of several days",
       {{std::chrono::hours(72), "target", "t", "", "x"}},
       "259200.000  target    t  x\n"},
  }));
  INFO(row.name);
  CHECK(timeline_text(row.entries) == row.text);
}

TEST_CASE("replay_report: a subject beyond 64 characters does not widen the column of others",
          "[tools][replay]") {
  const std::string longest(70, 's');
  CHECK(timeline_text(
            {{seconds(1), "target", longest, "", "x"}, {seconds(2), "target", "t", "", "y"}}) ==
        "     1.000  target    " + longest + "  x\n" +  //
            "     2.000  target    t" + std::string(63, ' ') + "  y\n");
}

TEST_CASE("replay_report: the state at a moment, as a tree", "[tools][replay]") {
  struct Row {
    const char* name;
    void (*change)(RuntimeStatus&);
    const char* text;
  };

  const auto row = GENERATE(values<Row>({
      {"no target", [](RuntimeStatus& status) { status.targets.clear(); }, "no target is in use\n"},
      {"the priority that takes the calls has a star",
       [](RuntimeStatus&) {},
       "xds:///orders: READY, ready\n"
       "  cluster shop\n"
       "  * priority 0 child0: READY\n"
       "        10.0.0.1:80: READY\n"},
      {"a target without a configuration",
       [](RuntimeStatus& status) {
         TargetStatus& target = status.targets[0];
         target.clusters.clear();
         target.state = ConnectivityState::kTransientFailure;
         target.ready = false;
         target.failure = absl::UnavailableError("LDS orders\ndid not come");
       },
       "xds:///orders: TRANSIENT_FAILURE, not ready: LDS orders\\ndid not come\n"},
      {"a priority that failed, and one that was not tried",
       [](RuntimeStatus& status) {
         ClusterStatus& cluster = status.targets[0].clusters[0];
         cluster.active.reset();
         PriorityStatus& first = cluster.priorities[0];
         first.state = ConnectivityState::kTransientFailure;
         first.reason = absl::UnavailableError("all addresses failed");
         first.localities[0].endpoints[0].addresses = {
             address_in(EndpointState::kTransientFailure, absl::UnavailableError("refused"))};
         cluster.priorities.push_back(priority_of("", std::nullopt));
       },
       "xds:///orders: READY, ready\n"
       "  cluster shop\n"
       "    priority 0 child0: TRANSIENT_FAILURE: all addresses failed\n"
       "        10.0.0.1:80: TRANSIENT_FAILURE: refused\n"
       "    priority 1: not started\n"},
      {"a leaf of an aggregate, a cluster that failed, an address that no policy uses",
       [](RuntimeStatus& status) {
         auto& clusters = status.targets[0].clusters;
         clusters[0].aggregate = ClusterName("all");
         clusters[0].priorities[0].localities[0].endpoints[0].addresses[0].state.reset();
         ClusterStatus broken{.name = ClusterName("broken"), .kind = ClusterKind::kFailed};
         broken.failure = absl::NotFoundError("no such cluster");
         clusters.push_back(broken);
       },
       "xds:///orders: READY, ready\n"
       "  cluster shop of all\n"
       "  * priority 0 child0: READY\n"
       "        10.0.0.1:80: NONE\n"
       "  cluster broken: no such cluster\n"},
  }));
  INFO(row.name);
  RuntimeStatus status = some_status();
  row.change(status);
  CHECK(state_text(status) == row.text);
}

TEST_CASE("replay_report: the data has the promised keys, no more and no less", "[tools][replay]") {
  CHECK(Json(entries_json(some_entries())) == Json::parse(R"json([
    {"at_ns": 1500000000, "kind": "target", "target": "xds:///orders", "subject": "",
     "text": "READY, ready, configuration 1"},
    {"at_ns": 12000000000, "kind": "priority", "target": "xds:///orders", "subject": "shop",
     "text": "priority 0 to priority 1 (failed)"}])json"));
  CHECK(entries_json({}) == nlohmann::ordered_json::array());
  CHECK(entries_json({{seconds(0), "k", "t", "s", "a\nb"}})[0]["text"] == "a\\nb");
}

TEST_CASE("replay_report: the first difference to another replay", "[tools][replay]") {
  struct Row {
    const char* name;
    void (*change)(std::vector<TimelineEntry>&);
    const char* text;
  };

  const auto row = GENERATE(values<Row>({
      {"none", [](std::vector<TimelineEntry>&) {}, "equal"},
      {"another text",
       [](std::vector<TimelineEntry>& other) { other[1].text = "none to priority 1 (first)"; },
       "entry 2 differs:\n"
       "  here:     12.000  priority  xds:///orders shop  priority 0 to priority 1 (failed)\n"
       "  other.json:     12.000  priority  xds:///orders shop  none to priority 1 (first)\n"},
      {"another time, of which the milliseconds are equal",
       [](std::vector<TimelineEntry>& other) { other[0].at += nanoseconds(7); },
       "entry 1 differs:\n"
       "  here: 1.500000000  target    xds:///orders  READY, ready, configuration 1\n"
       "  other.json: 1.500000007  target    xds:///orders  READY, ready, configuration 1\n"},
      {"the other has an entry more",
       [](std::vector<TimelineEntry>& other) {
         other.push_back({seconds(13), "target", "t", "", "gone"});
       },
       "entry 3 differs:\n"
       "  here:       (nothing more)\n"
       "  other.json:     13.000  target    t  gone\n"},
      {"the other has an entry less",
       [](std::vector<TimelineEntry>& other) { other.pop_back(); },
       "entry 2 differs:\n"
       "  here:     12.000  priority  xds:///orders shop  priority 0 to priority 1 (failed)\n"
       "  other.json:       (nothing more)\n"},
  }));
  INFO(row.name);
  std::vector<TimelineEntry> other = some_entries();
  row.change(other);
  CHECK(difference(some_entries(), replay_output(other).dump()) == row.text);
}

TEST_CASE("replay_report: texts that are escaped in the data are equal to themselves",
          "[tools][replay]") {
  const std::vector<TimelineEntry> entries = {{seconds(1), "target", "t", "", "a\n\xff"}};
  CHECK(difference(entries, replay_output(entries).dump()) == "equal");
}

TEST_CASE("replay_report: only replays of the same events and questions are compared",
          "[tools][replay]") {
  struct Row {
    const char* place;
    OrderedJson value;
    const char* text;
  };

  const Row rows[] = {
      {"/recorded_by", "9.9.9", "equal"},
      {"/recorded",
       "2026-11-28T13:00:00.000Z",
       "other.json: cannot be compared, it is of another recording: /recorded is "
       "\"2026-11-28T13:00:00.000Z\" there and \"2026-11-28T12:00:00.000Z\" here"},
      {"/events",
       39,
       "other.json: cannot be compared, it is of other events of the recording (is FILE.old "
       "missing?): /events is 39 there and 40 here"},
      {"/until_ns",
       12'500'000'000,
       "other.json: cannot be compared, it is of another --until: /until_ns is 12500000000 there "
       "and 20000000000 here"},
      {"/explanation/method",
       "/a/b",
       "other.json: cannot be compared, it is of another --explain: /explanation/method is "
       "\"/a/b\" there and null here"},
      {"/explanation/target",
       "xds:///a",
       "other.json: cannot be compared, it is of another --target: /explanation/target is "
       "\"xds:///a\" there and null here"},
      {"/explanation/seed",
       7,
       "other.json: cannot be compared, it is of another --seed: /explanation/seed is 7 there and "
       "null here"},
  };
  for (const Row& row : rows) {
    INFO(row.place);
    OrderedJson other = replay_output({});
    other[OrderedJson::json_pointer(row.place)] = row.value;
    CHECK(difference({}, other.dump()) == row.text);
  }
}

TEST_CASE("replay_report: what the recording does not have is said", "[tools][replay]") {
  CHECK(unmatched_text(0).empty());
  CHECK(
      unmatched_text(3) ==
      "\nunmatched: 3; so often the actors asked for something that the recording does not have.\n"
      "More than a few say that the replay went another way than the process.\n");
}

TEST_CASE("replay_report: brackets in texts nest nothing", "[tools][replay]") {
  const std::vector<TimelineEntry> entries = {
      {seconds(1), "target", "t", "", std::string(200, '[') + "\"\\"}};
  CHECK(difference(entries, replay_output(entries).dump()) == "equal");
}

TEST_CASE("replay_report: a file that is nested too deeply is no output of replay",
          "[tools][replay]") {
  const auto nested = [](const std::string& place, std::size_t depth) {
    std::string other = replay_output(some_entries()).dump();
    other.insert(1,
                 "\"" + place + "\": " + std::string(depth, '[') + std::string(depth, ']') + ", ");
    return difference(some_entries(), other);
  };
  CHECK(nested("another", 49) == "equal");
  CHECK(nested("another", 50) == "other.json: not the output of `signalbox replay --json`");
  for (const char* place : {"state", "recorded", "another"}) {
    INFO(place);
    CHECK(nested(place, 200'000) == "other.json: not the output of `signalbox replay --json`");
  }
}

TEST_CASE("replay_report: a file that is no output of replay is named", "[tools][replay]") {
  const auto other = GENERATE(as<std::string>{},
                              "",
                              "no JSON",
                              "[]",
                              "{}",
                              R"({"entries": {}})",
                              R"({"entries": []})",
                              R"({"entries": [1]})",
                              R"({"entries": [{"kind": "k"}]})",
                              R"({"entries": [{"at_ns": "1", "kind": "k", "target": "t",
                                         "subject": "s", "text": "x"}]})",
                              R"({"entries": [{"at_ns": 1.5, "kind": "k", "target": "t",
                                         "subject": "s", "text": "x"}]})",
                              R"({"entries": [{"at_ns": 1, "kind": "k", "target": "t",
                                         "subject": 7, "text": "x"}]})",
                              R"({"entries": [{"at_ns": 1, "kind": "k", "target": "t",
                                         "subject": "s"}]})");
  INFO(other);
  CHECK(difference(some_entries(), other) ==
        "other.json: not the output of `signalbox replay --json`");
}

}  // namespace signalbox::tools
