// SPDX-License-Identifier: Apache-2.0
//
// A recorded failover, replayed: by the library and by `signalbox replay`.
#include "channel/replay.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "channel/admin/status_json.hpp"
#include "channel/status_timeline.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/temporary_folder.hpp"
#include "xds/record/codec.hpp"
#include "xds/record/outside_state.hpp"
#include "xds/type_url.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

const char kSecret[] = "secret-of-a-call";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Subject and text of each change of priority.
std::vector<std::string> changes_in(const channel::StatusTimeline& timeline) {
  std::vector<std::string> changes;
  for (const channel::TimelineEntry& entry : timeline.entries()) {
    if (entry.kind == "priority") changes.push_back(absl::StrCat(entry.subject, ": ", entry.text));
  }
  return changes;
}

/// Two priorities of one cluster, or two clusters below an aggregate.
std::string two_tiers(const std::string& first, const std::string& second, bool is_aggregate) {
  const std::string routes =
      absl::StrCat(listener_yaml("orders", "orders"), routes_yaml("orders", "c"));
  if (!is_aggregate)
    return absl::StrCat(routes, cluster_yaml("c"), endpoints_yaml("c", {{first}, {second}}));
  return absl::StrCat(routes,
                      aggregate_yaml("c", {"near", "far"}),
                      cluster_yaml("near"),
                      cluster_yaml("far"),
                      endpoints_yaml("near", {{first}}),
                      endpoints_yaml("far", {{second}}));
}

Json without(const std::set<std::string>& keys, const std::string& json) {
  return Json::parse(json, [&](int /*depth*/, Json::parse_event_t event, const Json& found) {
    return event != Json::parse_event_t::key || !keys.contains(found.get<std::string>());
  });
}

/// A status without its times and its counts of calls, which a replay does not know.
Json snapshot_of(const RuntimeStatus& status) {
  const std::set<std::string> unknown = {
      "since", "configured", "window_ends", "calls_succeeded", "calls_failed", "calls_in_flight"};
  return without(unknown, channel::status_json(status))["targets"];
}

/// An explanation without its reasons: a replay has no turns of round_robin.
Json decisions_of(const std::string& explanation) {
  return without({"reason"}, explanation);
}

/// What a recorded runtime itself has seen.
struct Live {
  std::vector<std::string> changes;  ///< Of priority.
  /// While calls went to the primary backend, to the secondary, and to the primary again.
  std::vector<Json> snapshots;
  std::vector<Json> decisions;  ///< For calls with the seeds 0, 1, … at the end.
};

constexpr std::uint64_t kExplainedCalls = 4;
const char kExplainedMethod[] = "/demo.v1.Orders/Place";

/// Records a failover from a backend that is killed, and back.
Live record_failover(const std::string& path, bool is_aggregate = false) {
  std::optional<BackendProcess> primary(std::in_place, "primary");
  const std::string address = primary->address;
  const BackendProcess secondary("secondary");
  const auto plane = start_plane(two_tiers(address, secondary.address, is_aggregate));
  RuntimeOptions options = options_for(plane->address());
  options.record = RecordOptions{.path = path};
  options.seed = 7;
  auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  Live live;
  const auto reach = [&](const std::string& cluster) {
    REQUIRE(eventually([&] {
      return call(channel, {.headers = {{"authorization", kSecret}}}).cluster == cluster;
    }));
    // A snapshot that lasts is not one between two messages of actors.
    Json seen;
    auto since = std::chrono::steady_clock::now();
    REQUIRE(eventually([&] {
      const auto now = std::chrono::steady_clock::now();
      Json found = snapshot_of(runtime->status());
      if (std::exchange(seen, found) != found) since = now;
      return now - since > 100ms;
    }));
    live.snapshots.push_back(std::move(seen));
  };
  reach("primary");
  primary.reset();
  reach("secondary");
  primary.emplace("primary", std::vector<std::string>{"--listen", address});
  reach("primary");
  channel::StatusTimeline timeline;
  timeline.add({}, runtime->status());
  live.changes = changes_in(timeline);
  for (std::uint64_t seed = 0; seed < kExplainedCalls; ++seed) {
    auto explanation = runtime->explain_json("xds:///orders", kExplainedMethod, {}, seed);
    REQUIRE(explanation.ok());
    live.decisions.push_back(decisions_of(*explanation));
  }
  runtime.reset();  // Before the channel: the recording ends with the target in use.
  return live;
}

Recording recording_of(const std::string& path) {
  auto read = xds::read_recording(bytes_of(path), path);
  INFO(read.status().message());
  REQUIRE(read.ok());
  CHECK_FALSE(read->cut_at);
  return std::move(read->recording);
}

/// The end of the runtime releases its connections and resources, which is no part of the outage.
Recording without_end(Recording whole) {
  const auto is_of_the_end = [](const OutsideEvent& event) {
    return std::holds_alternative<ConnectLeft>(event) ||
           std::holds_alternative<StreamAsked>(event) || std::holds_alternative<StreamLeft>(event);
  };
  while (!whole.events.empty() && is_of_the_end(whole.events.back().what))
    whole.events.pop_back();
  return whole;
}

std::unique_ptr<channel::Replay> start_replay(Recording recording) {
  auto replay = channel::Replay::start(std::move(recording), [](const LogLine&) {});
  INFO(replay.status().message());
  REQUIRE(replay.ok());
  return *std::move(replay);
}

channel::StatusTimeline replayed(const std::string& path) {
  const auto replay = start_replay(recording_of(path));
  channel::StatusTimeline timeline;
  replay->run(replay->length(),
              [&](Duration at, const RuntimeStatus& status) { timeline.add(at, status); });
  return timeline;
}

/// The recording as its segment has it that begins before event `begin`.
Recording segment_from(const Recording& whole, std::size_t begin) {
  Recording segment;
  segment.header = whole.header;
  xds::OutsideState state;
  for (std::size_t i = 0; i < begin; ++i)
    state.apply(whole.events[i].what);
  const Duration at = begin == 0 ? Duration::zero() : whole.events[begin - 1].at;
  for (OutsideEvent& event : state.events())
    segment.events.push_back({at, true, std::move(event)});
  segment.events.insert(segment.events.end(),
                        whole.events.begin() + static_cast<std::ptrdiff_t>(begin),
                        whole.events.end());
  return segment;
}

const char kBootstrap[] = R"({"node": {"id": "n"}, "xds_servers": [{"server_uri": "127.0.0.1:1",
    "channel_creds": [{"type": "insecure"}]}]})";

/// A segment of a recording, as a file has it.
std::string segment_bytes(const RecordingHeader& header, const std::vector<RecordedEvent>& events) {
  std::string bytes = xds::recording_preamble() + xds::encode(header);
  for (const RecordedEvent& event : events)
    bytes += xds::encode(event);
  return bytes;
}

/// The first shell commands below a heading of docs/operate.md.
std::string commands_below(const std::string& heading) {
  const std::string page = bytes_of(SIGNALBOX_OPERATE_PAGE);
  const std::size_t section = page.find("\n## " + heading + "\n");
  REQUIRE(section != std::string::npos);
  const std::string fence = "```sh\n";
  const std::size_t begin = page.find(fence, section) + fence.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

/// A response with the resources of the text.
std::string response_of(ResourceType type, const std::string& nonce, const std::string& yaml) {
  envoy::service::discovery::v3::DiscoveryResponse response;
  response.set_type_url(std::string(xds::type_url_of(type)));
  response.set_version_info(nonce);
  response.set_nonce(nonce);
  for (const xds::ResourceBytes& resource : resources(yaml)) {
    auto* any = response.add_resources();
    any->set_type_url(resource.type_url);
    any->set_value(resource.bytes);
  }
  return response.SerializeAsString();
}

/// A recording in which a control plane serves xds:///orders.
struct Conversation {
  Recording whole;

  Conversation() {
    whole.header.bootstrap = kBootstrap;
    add(TargetOpened{"xds:///orders"});
    add(StreamBegan{0, 0});
    add(StreamOpened{0, 0});
  }

  void add(OutsideEvent event) { whole.events.push_back({1s, false, std::move(event)}); }

  void ask(ResourceType type, const std::vector<std::string>& names, const std::string& yaml) {
    add(StreamAsked{0, 0, type, "", false, names});
    respond(type, yaml);
  }

  void respond(ResourceType type, const std::string& yaml, bool refused = false) {
    const std::string nonce = std::to_string(whole.events.size());
    add(StreamReceived{0, 0, response_of(type, nonce, yaml)});
    add(StreamAsked{0, 0, type, nonce, refused, std::nullopt});
  }
};

Finished replay_command(const std::string& path, std::vector<std::string> more = {}) {
  std::vector<std::string> argv = {SIGNALBOX_PROGRAM, "replay", path};
  argv.insert(argv.end(), more.begin(), more.end());
  return run_program(argv);
}

}  // namespace

TEST_CASE("replay: a recorded failover has the same changes, and is the same each time",
          "[e2e][replay]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("orders.rec");
  const std::vector<std::string> live = record_failover(path).changes;
  REQUIRE(live.size() >= 3);  // To the first priority, to the second, and back.
  CHECK_THAT(bytes_of(path), !Contains(kSecret));

  const channel::StatusTimeline first = replayed(path);
  CHECK(changes_in(first) == live);
  CHECK(replayed(path).entries() == first.entries());

  // A status is made only when something has changed, and no change is missed.
  const auto each = start_replay(recording_of(path));
  channel::StatusTimeline of_each;
  std::size_t instants = 0;
  for (; each->run_instant(each->length()); ++instants)
    of_each.add(each->elapsed(), each->status());
  CHECK(of_each.entries() == first.entries());
  std::size_t statuses = 0;
  const auto counted = start_replay(recording_of(path));
  counted->run(counted->length(), [&](Duration, const RuntimeStatus&) { ++statuses; });
  CHECK(statuses > 0);
  CHECK(statuses < instants);

  const Finished text = replay_command(path);
  INFO(text.errors);
  CHECK(text.status == 0);
  CHECK(text.errors.empty());
  CHECK_THAT(text.output, Contains("to priority 1") && !Contains("unmatched"));
  CHECK(replay_command(path).output == text.output);

  const Finished json = replay_command(path, {"--json"});
  REQUIRE(json.status == 0);
  const Json data = Json::parse(json.output);
  CHECK(data["entries"].size() == first.entries().size());
  CHECK(data["unmatched"] == 0);
  CHECK(data["state"]["targets"].size() == 1);

  const std::string same = folder.write("same.json", json.output);
  CHECK(replay_command(path, {"--diff", same}).output ==
        absl::StrCat("equal: ", first.entries().size(), " entries\n"));
  const std::string other =
      folder.write("other.json", absl::StrReplaceAll(json.output, {{"READY", "OTHER"}}));
  const Finished difference = replay_command(path, {"--diff", other});
  CHECK(difference.status == 1);
  CHECK_THAT(difference.output, Contains("differs:\n  here:") && Contains("other.json:"));

  // At the beginning nothing is known; at the end a call goes to the first priority.
  const std::vector<std::string> call = {"--explain", kExplainedMethod};
  const Finished early = replay_command(path, {"--until", "0s"});
  CHECK_THAT(early.output, Contains("\nat 0, 20"));
  const Finished late = replay_command(path, {call[0], call[1], "--until", "1h"});
  INFO(late.output << late.errors);
  CHECK(late.status == 0);
  CHECK_THAT(late.errors, Contains("--until: 1h is after the end of the recording ("));
  CHECK_THAT(late.output, Contains("xds:///orders: READY, ready") && Contains("* priority 0"));
  CHECK_THAT(late.output,
             Contains("\nxds:///orders  /demo.v1.Orders/Place  --seed 0\n") &&
                 Contains("The call goes to 127.") && Contains(", in cluster c.\n"));
  const Finished as_data = replay_command(path, {call[0], call[1], "--json"});
  REQUIRE(as_data.status == 0);
  CHECK(Json::parse(as_data.output)["explanation"]["outcome"] == "complete");
}

TEST_CASE("replay: the snapshots and the decisions about calls are those of the recorded runtime",
          "[e2e][replay]") {
  const bool is_aggregate = GENERATE(false, true);
  INFO("aggregate: " << is_aggregate);
  const TemporaryFolder folder;
  const std::string path = folder.path("orders.rec");
  const Live live = record_failover(path, is_aggregate);

  const auto replay = start_replay(without_end(recording_of(path)));
  std::size_t found = 0;
  Json last;
  replay->run(replay->length(), [&](Duration /*at*/, const RuntimeStatus& status) {
    last = snapshot_of(status);
    while (found < live.snapshots.size() && live.snapshots[found] == last)
      ++found;
  });
  INFO("live: " << Json(live.snapshots).dump() << "\nreplayed at the end: " << last.dump());
  CHECK(found == live.snapshots.size());
  CHECK(last == live.snapshots.back());
  for (std::uint64_t seed = 0; seed < kExplainedCalls; ++seed) {
    const auto explanation = replay->explain_json({.method = kExplainedMethod, .seed = seed});
    REQUIRE(explanation.ok());
    CHECK(decisions_of(*explanation) == live.decisions[seed]);
  }
}

// Replays the segments that begin at each event of the recording, to a second after their end, and
// checks each replay and the status of its only target.
template <typename Check>
void replay_segments(const Recording& whole, const Check& check) {
  for (std::size_t begin = 0; begin <= whole.events.size(); ++begin) {
    INFO("from event " << begin << " of " << whole.events.size());
    const auto replay = start_replay(segment_from(whole, begin));
    replay->run(replay->length() + 1s, nullptr);
    const RuntimeStatus status = replay->status();
    REQUIRE(status.targets.size() == 1);
    check(*replay, status.targets[0]);
  }
}

TEST_CASE("replay: a segment that has lost the events before it leads to the same end",
          "[e2e][replay]") {
  const bool is_aggregate = GENERATE(false, true);
  INFO("aggregate: " << is_aggregate);
  const TemporaryFolder folder;
  const std::string path = folder.path("orders.rec");
  record_failover(path, is_aggregate);
  const Recording outage = without_end(recording_of(path));
  replay_segments(outage, [&](const auto& /*replay*/, const TargetStatus& target) {
    CHECK(target.ready);
    REQUIRE(target.clusters.size() == (is_aggregate ? 3 : 1));
    CHECK(target.clusters[0].active == std::optional<std::size_t>(0));
  });
}

TEST_CASE("replay: a segment connects a RING_HASH cluster that a call or the program had asked for",
          "[e2e][replay]") {
  const bool is_called = GENERATE(true, false);
  INFO("by a call: " << is_called);
  const TemporaryFolder folder;
  const std::string path = folder.path("orders.rec");
  {
    const BackendProcess backend("c");
    const auto plane = start_plane(absl::StrCat(listener_yaml("orders", "orders"),
                                                routes_yaml("orders", "c"),
                                                cluster_yaml("c", "", ", lb_policy: RING_HASH"),
                                                endpoints_yaml("c", {{backend.address}})));
    RuntimeOptions options = options_for(plane->address());
    options.record = RecordOptions{.path = path};
    auto runtime = start_runtime(std::move(options));
    const auto channel = runtime->channel("xds:///orders");
    if (is_called)
      REQUIRE(call(channel).cluster == "c");
    else
      REQUIRE(channel->WaitForConnected(std::chrono::system_clock::now() + kPatience));
  }
  Recording whole = recording_of(path);
  // What follows the connection is its end.
  const auto made = std::ranges::find_if(whole.events, [](const RecordedEvent& event) {
    return std::holds_alternative<ConnectMade>(event.what);
  });
  REQUIRE(made != whole.events.end());
  whole.events.erase(made + 1, whole.events.end());
  replay_segments(whole, [](const auto& replay, const TargetStatus& target) {
    CHECK(target.state == ConnectivityState::kReady);
    CHECK(replay.unmatched() == 0);
  });
}

TEST_CASE("replay: a segment begins with what was in force when an update was refused",
          "[e2e][replay]") {
  Conversation orders;
  const std::string clusters =
      aggregate_yaml("c", {"near", "far"}) + cluster_yaml("near") + cluster_yaml("far");
  orders.ask(ResourceType::kListener, {"orders"}, listener_yaml("orders", "orders"));
  orders.ask(ResourceType::kRouteConfig, {"orders"}, routes_yaml("orders", "c"));
  orders.ask(ResourceType::kCluster, {"c", "near", "far"}, clusters);
  orders.ask(ResourceType::kEndpoints,
             {"near", "far"},
             endpoints_yaml("near", {{"10.0.0.1:80"}}) + endpoints_yaml("far", {{"10.0.0.2:80"}}));
  // Refused: priority 0 is missing, and a cluster of an unknown type. "far" is valid.
  const std::string gap =
      replaced(endpoints_yaml("near", {{"10.0.0.9:80"}}), "priority: 0", "priority: 1");
  orders.respond(
      ResourceType::kEndpoints, gap + endpoints_yaml("far", {{"10.0.0.3:80"}}), /*refused=*/true);
  orders.respond(ResourceType::kCluster,
                 replaced(clusters, "type: EDS", "type: ORIGINAL_DST"),
                 /*refused=*/true);

  const auto replay = start_replay(segment_from(orders.whole, orders.whole.events.size()));
  replay->run(replay->length() + 1s, nullptr);
  const RuntimeStatus status = replay->status();
  REQUIRE(status.targets.size() == 1);
  std::vector<std::string> addresses;
  for (const ClusterStatus& cluster : status.targets[0].clusters) {
    for (const PriorityStatus& priority : cluster.priorities) {
      for (const LocalityStatus& locality : priority.localities) {
        for (const EndpointStatus& endpoint : locality.endpoints)
          addresses.push_back(
              absl::StrCat(cluster.name.str(), " ", endpoint.addresses.at(0).address.str()));
      }
    }
  }
  CHECK(addresses == std::vector<std::string>{"near 10.0.0.1:80", "far 10.0.0.3:80"});
}

TEST_CASE("replay: a segment begins with a listener that is deleted, but still in use",
          "[e2e][replay][A88]") {
  Conversation orders;
  orders.ask(ResourceType::kListener, {"orders"}, listener_yaml("orders", "orders"));
  orders.ask(ResourceType::kRouteConfig, {"orders"}, routes_yaml("orders", "c"));
  orders.ask(ResourceType::kCluster, {"c"}, cluster_yaml("c"));
  orders.ask(ResourceType::kEndpoints, {"c"}, endpoints_yaml("c", {{"10.0.0.1:80"}}));
  orders.respond(ResourceType::kListener, listener_yaml("other", "other"));

  const auto replay = start_replay(segment_from(orders.whole, orders.whole.events.size()));
  replay->run(replay->length() + 20s, nullptr);  // Longer than resource_timeout.
  const RuntimeStatus status = replay->status();
  REQUIRE(status.targets.size() == 1);
  REQUIRE(status.targets[0].clusters.size() == 1);
  CHECK(status.targets[0].clusters[0].name.str() == "c");
}

TEST_CASE("replay: the commands of docs/operate.md replay the outage of the demo, each time alike",
          "[e2e][replay][demo]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("demo.rec");
  // A shorter demo than that of a reader.
  const std::string script =
      absl::StrCat("cd '",
                   folder.path("."),
                   "'\nPATH='",
                   std::filesystem::path(SIGNALBOX_PROGRAM).parent_path().string(),
                   "':$PATH\n",
                   absl::StrReplaceAll(commands_below("Replaying an outage"), {{"12.5s", "3s"}}));
  auto shell = start_program({"/usr/bin/env",
                              "SIGNALBOX_DEMO_SECONDS=4",
                              "SIGNALBOX_DEMO_RPS=50",
                              "/bin/sh",
                              "-c",
                              script});
  const Finished pasted = finish(shell, 3 * kPatience);
  INFO(pasted.output << pasted.errors);
  CHECK(pasted.status == 0);
  CHECK_THAT(pasted.errors, !Contains("signalbox replay: "));
  CHECK_THAT(pasted.output,
             Contains("\nat 3s, 20") && Contains("Z:\nxds:///orders: ") &&
                 Contains("\nxds:///orders  /signalbox.demo.v1.Orders/Place  --seed 0\n") &&
                 Contains("equal: "));
  const Finished first = replay_command(path, {"--json"});
  INFO(first.errors);
  REQUIRE(first.status == 0);
  CHECK(replay_command(path, {"--json"}).output == first.output);
  const Json data = Json::parse(first.output);
  // In the demo a session holds an endpoint that drains and comes back.
  CHECK(data["unmatched"] == 0);
  std::size_t changes = 0;
  for (const Json& entry : data["entries"]) {
    if (entry["kind"] == "priority") ++changes;
  }
  CHECK(changes >= 3);
}

TEST_CASE("replay: bad files and questions get an error that says what is wrong", "[e2e][replay]") {
  const TemporaryFolder folder;
  const auto error_of = [](const Finished& finished, int status) {
    CHECK(finished.status == status);
    CHECK(finished.output.empty());
    return finished.errors;
  };
  CHECK_THAT(error_of(replay_command(folder.path("none.rec")), 2), Contains("none.rec"));
  const std::string old = folder.write("gone.rec.old", "");
  CHECK_THAT(error_of(replay_command(folder.path("gone.rec")), 2),
             Contains("gone.rec: No such file or directory; there is " + old +
                      ", which can be replayed alone\n"));
  CHECK_THAT(error_of(replay_command(folder.write("a.rec", "GIF89a")), 2),
             Contains("not a recording of signalbox: it begins with 'GIF89a'"));
  CHECK_THAT(error_of(replay_command(folder.write("b.rec", "signalbox-recording 9\n")), 2),
             Contains("a recording of format 9; this signalbox reads format 2"));
  RecordingHeader header;
  header.version = "9.9.9";
  header.bootstrap = kBootstrap;
  header.settings = {{"a_later_option", "1"}};
  const std::string head = xds::recording_preamble() + xds::encode(header);
  const std::string event = xds::encode(RecordedEvent{1s, false, TargetOpened{"xds:///orders"}});
  const std::string cut = folder.write("c.rec", head + event + event.substr(0, 5));
  std::string damaged = event;
  damaged[1] = 1;  // Its length is 256 longer.
  for (const std::string& path :
       {cut, folder.write("h.rec", absl::StrCat(head, event, damaged, event))}) {
    CHECK(error_of(replay_command(path), 1) ==
          absl::StrCat("signalbox replay: ",
                       path,
                       ": cut off, or the length of an event is damaged, at byte ",
                       head.size() + event.size(),
                       ": 1 events are whole, the last at 1s; --allow-cut replays them\n"));
  }
  const Finished allowed = replay_command(cut, {"--allow-cut"});
  CHECK(allowed.status == 0);
  CHECK_THAT(allowed.errors,
             Contains("signalbox 9.9.9 recorded settings that this one does not have, and ignores: "
                      "a_later_option"));
  const std::string whole = folder.write("d.rec", head + event);
  CHECK_THAT(error_of(replay_command(whole, {"--until", "soon"}), 2),
             Contains("--until: expected a duration (12.5s, 3m) or a time"));
  CHECK_THAT(error_of(replay_command(whole, {"--diff", cut}), 2),
             Contains("not the output of `signalbox replay --json`"));
  CHECK_THAT(error_of(replay_command(whole, {"--diff", ""}), 2),
             Contains("--diff: expected the name of a file, got ''"));
  CHECK_THAT(error_of(replay_command(whole, {"--until", ""}), 2),
             Contains("--until: expected a time, got ''"));
  CHECK_THAT(error_of(replay_command(whole, {"--explain", "/a/b", "--target", "xds:///x"}), 2),
             Contains("target: 'xds:///x' is not in use at 1s; there are: xds:///orders\n"));
  const std::string closed = folder.write(
      "f.rec",
      head + event + xds::encode(RecordedEvent{4200ms, false, TargetClosed{"xds:///orders"}}));
  CHECK_THAT(error_of(replay_command(closed, {"--explain", "/a/b"}), 2),
             Contains("no target is in use at 4.2s; --until gives an earlier time\n"));
  CHECK_THAT(error_of(replay_command(closed, {"--explain", "/a/b", "--until", "500ms"}), 2),
             Contains("no target is in use at 500ms\n"));
  const std::string unused = folder.write("h.rec", head);
  CHECK_THAT(error_of(replay_command(unused, {"--explain", "/a/b"}), 2),
             Contains("no target is in use at 0\n"));
  const std::string two = folder.write(
      "g.rec", head + event + xds::encode(RecordedEvent{1s, false, TargetOpened{"xds:///b"}}));
  CHECK_THAT(error_of(replay_command(two, {"--explain", "/a/b"}), 2),
             Contains("target: must be given, because several are in use at 1s: "
                      "xds:///b, xds:///orders\n"));
  header.settings = {{"aggregate_mode", "many"}};
  const std::string bad =
      folder.write("e.rec", xds::recording_preamble() + xds::encode(header) + event);
  CHECK_THAT(error_of(replay_command(bad), 1),
             Contains("e.rec: the recording's setting aggregate_mode has the value 'many', "
                      "expected 0 to 1\n"));
}

TEST_CASE("replay: a recording and the output of another build may have 2 GiB", "[e2e][replay]") {
  const TemporaryFolder folder;
  // The files have a length, but no bytes on the disk.
  const auto sparse = [&](const std::string& name, std::uintmax_t size) {
    const std::string path = folder.write(name, "");
    std::filesystem::resize_file(path, size);
    return path;
  };
  const std::uintmax_t most = std::uintmax_t{2} << 30U;
  const std::string large = sparse("large.json", (std::uintmax_t{64} << 20U) + 1);
  const std::string too_large = sparse("too_large", most + 1);
  const std::string whole = folder.write(
      "a.rec", segment_bytes({.bootstrap = kBootstrap}, {{1s, false, TargetOpened{"xds:///a"}}}));
  const std::string refusal = absl::StrCat("signalbox replay: cannot read ",
                                           too_large,
                                           ": must have at most ",
                                           most,
                                           " bytes, found ",
                                           most + 1,
                                           "\n");
  CHECK(replay_command(too_large).errors == refusal);
  CHECK(replay_command(whole, {"--diff", too_large}).errors == refusal);
  CHECK_THAT(replay_command(whole, {"--diff", large}).errors,
             Contains("not the output of `signalbox replay --json`"));
}

TEST_CASE("replay: the segment before the file goes first, if it is there and belongs to it",
          "[e2e][replay]") {
  struct Row {
    const char* name;
    std::uint64_t run;      // Of the file; that of the earlier one is 7.
    std::uint64_t segment;  // Of the file; that of the earlier one is 0.
    void (*change)(const std::string& earlier);
    bool is_joined;
    const char* warning;
  };

  const auto keep = [](const std::string&) {};
  const auto remove = [](const std::string& earlier) { std::filesystem::remove(earlier); };
  const auto cut = [](const std::string& earlier) {
    std::ofstream(earlier, std::ios::binary | std::ios::app) << "half";
  };
  const auto damage = [](const std::string& earlier) {
    std::fstream file(earlier, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end) << '!';
  };
  const Row rows[] = {
      {"it is there", 7, 1, keep, true, ""},
      {"it is of another run",
       8,
       1,
       keep,
       false,
       "signalbox replay: a.rec.old is of another run: only a.rec is replayed\n"},
      {"a segment is missing between them",
       7,
       2,
       keep,
       false,
       "signalbox replay: a.rec.old is segment 0 of the recording, not segment 1: only a.rec is "
       "replayed\n"},
      {"the file is the first one",
       7,
       0,
       damage,
       false,
       "signalbox replay: a.rec.old, the recording of an earlier process, is no part of this "
       "replay\n"},
      {"it is missing",
       7,
       1,
       remove,
       false,
       "signalbox replay: cannot read a.rec.old: No such file or directory: only a.rec is "
       "replayed\n"},
      {"it was cut off",
       7,
       1,
       cut,
       false,
       "signalbox replay: a.rec.old: cut off, or the length of an event is damaged, at byte SIZE: "
       "only a.rec is replayed\n"},
      {"it is damaged",
       7,
       1,
       damage,
       false,
       "signalbox replay: a.rec.old: damaged at byte LAST: the checksum is not that of the bytes: "
       "only a.rec is replayed\n"},
  };
  const std::string carried = "xds:///carried";
  const RecordedEvent last{1500ms, false, TargetWoken{carried}};
  for (const Row& row : rows) {
    INFO(row.name);
    const TemporaryFolder folder;
    RecordingHeader header{.run = 7, .segment = 0, .bootstrap = kBootstrap};
    const std::string before = segment_bytes(header, {{1s, false, TargetOpened{carried}}, last});
    row.change(folder.write("a.rec.old", before));
    header.run = row.run;
    header.segment = row.segment;
    const std::string path = folder.write("a.rec",
                                          segment_bytes(header,
                                                        {{1500ms, true, TargetOpened{carried}},
                                                         {2s, false, TargetOpened{"xds:///new"}}}));
    const Finished finished = replay_command(path, {"--json"});
    CHECK(
        absl::StrReplaceAll(finished.errors, {{folder.path(""), ""}}) ==
        absl::StrReplaceAll(row.warning,
                            {{"SIZE", std::to_string(before.size())},
                             {"LAST", std::to_string(before.size() - xds::encode(last).size())}}));
    REQUIRE(finished.status == 0);
    const Json data = Json::parse(finished.output);
    CHECK(data["events"] == (row.is_joined ? 3 : 2));
    CHECK(data["entries"][0]["at_ns"] ==
          std::chrono::nanoseconds(row.is_joined ? 1s : 1500ms).count());
    REQUIRE(data["state"]["targets"].size() == 2);
    CHECK(data["state"]["targets"][0]["name"] == carried);
  }
}

TEST_CASE("replay: what the recording lacks is said", "[e2e][replay]") {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.rec",
      segment_bytes({.bootstrap = kBootstrap, .extensions = {"com.example.Quorum", "shop.audit"}},
                    {{1s, false, TargetOpened{"xds:///a"}}, {2500ms, false, EventsDropped{5}}}));
  const Finished finished = replay_command(path);
  CHECK(finished.status == 0);
  CHECK(finished.errors ==
        "signalbox replay: 5 events are missing at 2.5s: what follows may differ from what was\n"
        "signalbox replay: the recorded program has policies or filters of its own, which a replay "
        "does not have: com.example.Quorum, shop.audit\n");
  // The client opens a stream to the control plane, of which the recording knows nothing.
  CHECK_THAT(finished.output, Contains("\nunmatched: 1; "));
  CHECK_THAT(replay_command(path, {"--until", "1h"}).output, Contains("\nunmatched: 1; "));
  // Only a replay of the same can show that builds differ.
  const std::string before = folder.write("before.json", replay_command(path, {"--json"}).output);
  const Finished other = replay_command(path, {"--until", "2s", "--diff", before});
  CHECK(other.status == 2);
  CHECK(other.output.empty());
  CHECK_THAT(other.errors, Contains("before.json: cannot be compared, it is of another --until"));
}

TEST_CASE("replay: --until is a time since the beginning, or a time of day", "[e2e][replay]") {
  const TemporaryFolder folder;
  RecordingHeader header{.bootstrap = kBootstrap};
  header.started = std::chrono::sys_days(std::chrono::year(2026) / 11 / 28) + 11h + 59min + 50s;
  const std::string path = folder.write(
      "a.rec",
      segment_bytes(
          header, {{4s, false, TargetOpened{"xds:///a"}}, {15s, false, TargetOpened{"xds:///b"}}}));
  for (const char* until : {"10s", "2026-11-28T12:00:00Z", "2026-11-28T14:00:00+02:00"}) {
    INFO(until);
    const Finished finished = replay_command(path, {"--until", until});
    CHECK(finished.status == 0);
    CHECK(finished.errors.empty());
    CHECK_THAT(
        finished.output,
        Contains("\nat 10s, 2026-11-28T12:00:00.000Z:\nxds:///a: ") && !Contains("xds:///b"));
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"2026-11-28T11:59:49Z", "is before the recording, which began at 2026-11-28T11:59:50.000Z"},
      {"2026-11-28T13:00:06Z", "is more than 1h after the end of the recording (15s)"},
      {"1h15.1s", "is more than 1h after the end of the recording (15s)"},
      {"inf", "is more than 1h after the end of the recording (15s)"}};
  for (const auto& [until, text] : wrong) {
    const Finished finished = replay_command(path, {"--until", until});
    CHECK(finished.status == 2);
    CHECK_THAT(finished.errors, Contains(text));
  }
  const std::pair<const char*, const char*> longer[] = {
      {"15s", ""},
      {"15.1s",
       "signalbox replay: --until: 15.1s is after the end of the recording (15s): what happens "
       "after it is not known\n"}};
  for (const auto& [until, text] : longer) {
    const Finished finished = replay_command(path, {"--until", until});
    CHECK(finished.status == 0);
    CHECK(finished.errors == text);
  }
  CHECK(replay_command(path, {"--until", "1h15s"}).status == 0);
  // The time that the heading shows is taken, though the recording began later by 700 µs.
  header.started += 700us;
  const std::string later =
      folder.write("b.rec", segment_bytes(header, {{4s, false, TargetOpened{"xds:///a"}}}));
  const Finished begin = replay_command(later, {"--until", "2026-11-28T11:59:50.000Z"});
  CHECK(begin.status == 0);
  CHECK_THAT(begin.output,
             StartsWith("recorded 2026-11-28T11:59:50.000Z ") &&
                 Contains("\nat 0, 2026-11-28T11:59:50.000Z:\n"));
}

TEST_CASE("replay: --diff compares the state and the explanation, too", "[e2e][replay]") {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.rec", segment_bytes({.bootstrap = kBootstrap}, {{1s, false, TargetOpened{"xds:///a"}}}));
  using OrderedJson = nlohmann::ordered_json;
  const OrderedJson before =
      OrderedJson::parse(replay_command(path, {"--json", "--explain", "/a/b"}).output);

  struct Row {
    std::vector<std::string> arguments;
    void (*change)(OrderedJson& other);
    const char* text;
  };

  const Row rows[] = {
      {{"--explain", "/a/b"}, [](OrderedJson&) {}, "equal: 1 entries\n"},
      {{"--explain", "/a/b"},
       [](OrderedJson& other) { other["state"]["version"] = "9.9.9"; },
       "equal: 1 entries\n"},
      {{"--explain", "/a/b"},
       [](OrderedJson& other) { other["state"]["targets"][0]["ready"] = true; },
       "state differs:\n  here: /targets/0/ready false\n  before: /targets/0/ready true\n"},
      {{"--explain", "/a/b"},
       [](OrderedJson& other) { other["explanation"]["outcome"] = "fail"; },
       "explanation differs:\n  here: /outcome \"queue\"\n  before: /outcome \"fail\"\n"},
      {{"--explain", "/a/b"},
       [](OrderedJson& other) { other["unmatched"] = 7; },
       "unmatched differs:\n  here: 1\n  before: 7\n"},
  };
  for (const Row& row : rows) {
    OrderedJson other = before;
    row.change(other);
    std::vector<std::string> arguments = row.arguments;
    arguments.insert(arguments.end(), {"--diff", folder.write("before", other.dump())});
    const Finished finished = replay_command(path, arguments);
    CHECK(absl::StrReplaceAll(finished.output, {{folder.path(""), ""}}) == row.text);
    CHECK(finished.status == (finished.output.starts_with("equal") ? 0 : 1));
  }
  const std::string asked = folder.write("asked.json", before.dump());
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--header", "user:7"}, {"--cookie", "user=7"}}) {
    const Finished of_another =
        replay_command(path, {"--explain", "/a/b", more[0], more[1], "--diff", asked});
    CHECK(of_another.status == 2);
    CHECK_THAT(of_another.errors,
               Contains("cannot be compared, it is of other --header or --cookie: /headers_hash is "
                        "null there and \""));
  }
  const Finished not_asked = replay_command(path, {"--diff", asked});
  CHECK(not_asked.status == 2);
  CHECK_THAT(not_asked.errors,
             Contains("of another --explain: /explanation/method is \"/a/b\" there and null here"));
}

TEST_CASE("replay: headers, cookies and a seed belong to the call that is explained",
          "[e2e][replay]") {
  const auto only = [](const std::string& header, const std::string& value) {
    return absl::StrCat("routes: [{match: {prefix: \"\", headers: [{name: ",
                        header,
                        ", string_match: {exact: \"",
                        value,
                        "\"}}]}, route: {cluster: ",
                        header,
                        "}}, ");
  };
  std::string routes = routes_yaml("orders", "others");
  routes = replaced(routes, "routes: [", only("x-user", "7"));
  routes = replaced(routes, "routes: [", only("cookie", "s=1"));
  const std::vector<std::string> names = {"others", "x-user", "cookie"};
  std::string clusters;
  std::string endpoints;
  for (const std::string& name : names) {
    clusters += cluster_yaml(name);
    endpoints += endpoints_yaml(name, {{"10.0.0.1:80"}});
  }
  Conversation orders;
  orders.ask(ResourceType::kListener, {"orders"}, listener_yaml("orders", "orders"));
  orders.ask(ResourceType::kRouteConfig, {"orders"}, routes);
  orders.ask(ResourceType::kCluster, names, clusters);
  orders.ask(ResourceType::kEndpoints, names, endpoints);
  const TemporaryFolder folder;
  const std::string path =
      folder.write("a.rec", segment_bytes(orders.whole.header, orders.whole.events));

  struct Row {
    std::vector<std::string> arguments;
    const char* cluster;
    int seed;
  };

  const Row rows[] = {{{}, "others", 0},
                      {{"--header", "x-user:7"}, "x-user", 0},
                      {{"--cookie", "s=1"}, "cookie", 0},
                      {{"--seed", "42"}, "others", 42}};
  std::set<std::string> hashes;
  for (const Row& row : rows) {
    std::vector<std::string> arguments = {"--json", "--explain", "/demo.v1.Orders/Place"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    const Finished finished = replay_command(path, arguments);
    INFO(finished.errors);
    REQUIRE(finished.status == 0);
    const Json explanation = Json::parse(finished.output)["explanation"];
    CHECK(explanation["cluster"] == row.cluster);
    CHECK(explanation["seed"] == row.seed);
    CHECK(finished.errors.empty());
    hashes.insert(Json::parse(finished.output).value("headers_hash", ""));
  }

  CHECK(hashes.size() == 3);  // No headers, another header, another cookie.

  orders.whole.header.settings["session_cookies.sealed"] = "1";
  const std::string sealed =
      folder.write("sealed.rec", segment_bytes(orders.whole.header, orders.whole.events));
  CHECK(replay_command(sealed, {"--explain", "/a/b"}).errors.empty());
  CHECK(replay_command(sealed, {"--explain", "/a/b", "--cookie", "s=1"}).errors ==
        "signalbox replay: the recorded process sealed its session cookies: a replay, which has no "
        "keys, takes the cookie for a plain one\n");
}

TEST_CASE("replay: the recorded variables of the environment count, and not those of this process",
          "[e2e][replay]") {
  // One endpoint in a zone of weight 1, and nine in another of weight 1. By default each zone has
  // half of the ring. Without weighted shuffling each endpoint has a tenth (A113).
  std::vector<std::string> nine;
  for (int i = 1; i <= 9; ++i)
    nine.push_back(absl::StrCat("10.0.1.", i, ":80"));
  const std::string alone = "10.0.0.1:80";
  Conversation orders;
  orders.ask(ResourceType::kListener, {"orders"}, listener_yaml("orders", "orders"));
  orders.ask(ResourceType::kRouteConfig, {"orders"}, routes_yaml("orders", "c"));
  orders.ask(ResourceType::kCluster, {"c"}, cluster_yaml("c", "", ", lb_policy: RING_HASH"));
  orders.ask(ResourceType::kEndpoints,
             {"c"},
             replaced(endpoints_yaml("c", {{alone}, nine}), "priority: 1", "priority: 0"));
  const auto calls_of_alone = [&](const std::string& weighted) {
    orders.whole.header.environment = {{"GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING", weighted}};
    const auto replay = start_replay(orders.whole);
    replay->run(replay->length() + 1s, nullptr);
    int found = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto text = replay->explain_json({.method = "/a/b", .seed = seed});
      REQUIRE(text.ok());
      if (absl::StrContains(*text, alone + " is where it belongs")) ++found;
    }
    return found;
  };
  CHECK(calls_of_alone("true") > 30);
  CHECK(calls_of_alone("false") < 20);
}

TEST_CASE("replay: a resource file takes the place of a control plane", "[e2e][replay][file]") {
  const TemporaryFolder folder;
  const BackendProcess backend("c");
  const std::string file =
      folder.write("resources.yaml",
                   absl::StrCat("resources:\n", simple_yaml("orders", "c", {backend.address})));
  RuntimeOptions options = options_for("");
  options.bootstrap_json = std::nullopt;
  options.bootstrap_path =
      folder.write("bootstrap.json", R"({"signalbox.resources": "resources.yaml"})");
  const std::string path = folder.path("orders.rec");
  options.record = RecordOptions{.path = path};
  auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  runtime.reset();                // Before the channel: the recording ends with the target in use.
  std::filesystem::remove(file);  // A replay does not read it.

  const Finished finished = replay_command(path, {"--explain", "/demo.v1.Orders/Place"});
  CHECK(finished.status == 0);
  CHECK(finished.errors.empty());
  CHECK_THAT(finished.output,
             Contains(absl::StrCat("The call goes to ", backend.address, ", in cluster c.")) &&
                 !Contains("unmatched"));
}

TEST_CASE("replay: a control plane that is lost is a line, with its name and reason",
          "[e2e][replay]") {
  Conversation orders;
  orders.whole.events.push_back(
      {2s, false, StreamClosed{0, 0, absl::UnavailableError("connection reset")}});
  const TemporaryFolder folder;
  const std::string path =
      folder.write("a.rec", segment_bytes(orders.whole.header, orders.whole.events));
  const Finished finished = replay_command(path);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK_THAT(finished.output,
             Contains("     2.000  log ") &&
                 Contains("  xDS server 127.0.0.1:1 is lost: connection reset"));
}

TEST_CASE("replay: a demo that cannot record says so", "[e2e][replay][demo]") {
  const Finished demo = run_program({SIGNALBOX_PROGRAM, "demo", "--record", "/"});
  CHECK(demo.status == 1);
  CHECK_THAT(demo.errors, Contains("signalbox demo: --record: recording /: is no regular file"));
}

TEST_CASE("replay: a runtime does not start when it cannot record", "[e2e][replay]") {
  const auto plane = start_plane("");
  RuntimeOptions options = options_for(plane->address());
  options.record = RecordOptions{.path = "/nowhere/orders.rec"};
  const auto runtime = Runtime::start(options);
  CHECK_THAT(
      std::string(runtime.status().message()),
      Contains("RuntimeOptions::record: recording /nowhere/orders.rec: cannot open the file"));
  options.record->max_bytes = 1;
  CHECK_THAT(
      std::string(Runtime::start(options).status().message()),
      Contains("RuntimeOptions::record.max_bytes: must be at least 1048576 (1 MiB), found 1"));
}

}  // namespace signalbox::test
