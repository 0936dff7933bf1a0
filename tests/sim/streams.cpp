// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/streams.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/channel_port.hpp"
#include "actors/supervisor_actor.hpp"
#include "lb/pick/router.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "tests/sim/environment.hpp"
#include "tests/sim/quiescence.hpp"
#include "tests/sim/resources.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kTurmoil = seconds(40);
// A stream may be free for this long while a call waits for one.
constexpr Duration kPatience = seconds(1);
const char kOnlyCluster[] = "c1";  // It has no health checks and no load reports.

// The faults of a seed: each of these in half of the seeds.
testing::Menu menu_of(std::uint64_t seed) {
  FakeChance dice(~seed);
  testing::Menu menu;
  for (const Fault fault : {Fault::kHandshakeSlow,
                            Fault::kHandshakeReset,
                            Fault::kConnectionShort,
                            Fault::kConnectionReset,
                            Fault::kActorKilled}) {
    if (dice.percent(50)) menu.insert(fault);
  }
  return menu;
}

class StreamsWorld final : public actors::PublicationListener {
 public:
  explicit StreamsWorld(std::uint64_t seed)
      : setting_(seed, FakeFaults(seed, menu_of(seed)), nullptr),
        stage_(
            setting_.clock, setting_.chance, setting_.faults, setting_.complaints, setting_.trace),
        cell_(std::make_shared<lb::SnapshotCell>()),
        router_(cell_) {
    limit_ = static_cast<std::uint32_t>(1 + setting_.chance.below(2));
    setting_.connector->set_stream_limit(limit_);
    setting_.clock.set_grid(
        setting_.chance.one_of(std::vector<Duration>{Duration(1), milliseconds(5)}));
    // A policy that keeps each host connected, or pick_first.
    const auto is_fit = [](const PolicyRow& row) {
      return row.connects == Connects::kAll || row.connects == Connects::kOne;
    };
    std::vector<const PolicyRow*> rows;
    for (const PolicyRow& row : policy_table()) {
      if (is_fit(row)) rows.push_back(&row);
    }
    cluster_.policy = setting_.chance.one_of(rows);
    cluster_.max_connections = static_cast<unsigned>(1 + setting_.chance.below(2));
    cluster_.priorities = {{LocalityModel{"z0", 1, {HostModel{0}, HostModel{1}}}}};
  }

  ~StreamsWorld() override {
    supervisor_ = nullptr;
    stage_.clear();
    others_.clear();
    calls_.clear();
    setting_.clock.clear();
    cell_->exchange(std::make_unique<const lb::Snapshot>());
    setting_.reclaimer->end_world();
  }

  StreamsWorld(const StreamsWorld&) = delete;
  StreamsWorld& operator=(const StreamsWorld&) = delete;

  StreamsRun run(std::uint64_t seed) {
    open(seed);
    change_soon();
    call_soon();
    others_call_soon();
    strike_soon();
    pass(kTurmoil);
    calm();
    stop();
    StreamsRun result;
    result.calls = started_;
    result.waits = waits_;
    result.broken = setting_.complaints.sentences();
    if (!result.broken.empty()) {
      std::ostringstream story;
      setting_.trace.print_last(story);
      result.story = story.str();
    }
    return result;
  }

  void published(std::uint64_t, ConnectivityState) override {
    setting_.clock.after(setting_.chance.between(Duration::zero(), milliseconds(5)),
                         [this] { ask_again(); });
  }

 private:
  struct StreamCall {
    std::uint64_t seed = 0;
    Duration length{};
    lb::Pick pick;
    std::unique_ptr<lb::StreamWait> wait;  ///< Null: the call waits for no stream.
    bool runs = false;
    bool has_stream = false;
  };

  // --- the acts ---

  void open(std::uint64_t seed) {
    actors::Environment environment = environment_of(setting_, seed);
    environment.ads_transports = {setting_.control_plane};
    supervisor_ = actors::spawn_supervisor(
        stage_.system(), std::make_shared<const actors::Environment>(std::move(environment)));
    TargetModel target;
    target.listener = "orders";
    target.route_name = "routes";
    target.routes.push_back({"", {{kOnlyCluster, 1}}});
    auto& server = *setting_.control_plane;
    server.set(ResourceType::kListener, target.listener, listener_bytes(target));
    server.set(ResourceType::kRouteConfig, target.route_name, route_bytes(target));
    server.set(ResourceType::kEndpoints, kOnlyCluster, endpoints_bytes(kOnlyCluster, cluster_));
    serve();
    auto port = std::make_shared<actors::ChannelPort>();
    port->target = "xds:///orders";
    port->listener_resource = target.listener;
    port->authority = target.listener;
    port->cell = cell_;
    port->listener = std::shared_ptr<actors::PublicationListener>(std::shared_ptr<void>(), this);
    protocol::post(supervisor_, protocol::OpenChannel{std::move(port)});
  }

  // Ends faults and calls of others, and waits until every call has ended. Three minutes are longer
  // than any back-off.
  void calm() {
    is_calm_ = true;
    setting_.faults.end();
    setting_.connector->set_stream_limit(limit_);
    others_.clear();
    cluster_.max_connections = 2;
    serve();
    pass(minutes(3));
    setting_.complaints.require(
        calls_.empty(), "every call runs", absl::StrCat(calls_.size(), " calls wait"));
  }

  void stop() {
    if (!setting_.complaints.empty()) return;
    protocol::stop(supervisor_);
    supervisor_ = nullptr;
    pass(minutes(1));
    cell_->exchange(std::make_unique<const lb::Snapshot>());
    setting_.reclaimer->sweep();
    pass(minutes(1));
    setting_.reclaimer->sweep();
    nothing_is_left(setting_, stage_, setting_.complaints);
  }

  void pass(Duration duration) {
    const Instant end = setting_.clock.now() + duration;
    while (setting_.complaints.empty() && stage_.step(end))
      check();
  }

  // --- history ---

  void serve() {
    setting_.trace.note(
        setting_.clock.now(), "world", "connections to a host", cluster_.max_connections);
    setting_.control_plane->set(
        ResourceType::kCluster, kOnlyCluster, cluster_bytes(kOnlyCluster, cluster_));
  }

  void change_soon() {
    setting_.clock.after(setting_.chance.between(milliseconds(100), seconds(5)), [this] {
      if (is_calm_) return;
      cluster_.max_connections = setting_.chance.one_of(std::vector<unsigned>{1, 1, 2, 2, 3});
      // A server that is slow to send its SETTINGS: its limit is not known.
      setting_.connector->set_stream_limit(setting_.chance.percent(30) ? std::nullopt
                                                                       : std::optional(limit_));
      serve();
      change_soon();
    });
  }

  void call_soon() {
    setting_.clock.after(setting_.chance.between(milliseconds(5), milliseconds(600)), [this] {
      if (is_calm_) return;
      start();
      call_soon();
    });
  }

  // Calls of another target on shared connections: they take no stream.
  void others_call_soon() {
    setting_.clock.after(setting_.chance.between(milliseconds(20), seconds(1)), [this] {
      if (is_calm_) return;
      std::vector<ConnectionPtr> shared;
      for (const auto& standing : setting_.connector->open()) {
        if (standing.is_shared) shared.push_back(standing.connection);
      }
      if (!shared.empty()) {
        const std::uint64_t number = ++started_others_;
        others_.emplace(number, Use(*setting_.chance.one_of(shared)));
        setting_.clock.after(length(), [this, number] {
          others_.erase(number);
          setting_.reclaimer->sweep();
        });
      }
      others_call_soon();
    });
  }

  void strike_soon() {
    setting_.clock.after(setting_.chance.between(milliseconds(500), seconds(4)), [this] {
      if (is_calm_) return;
      FakeChance& chance = setting_.chance;
      if (setting_.faults.fires(Fault::kConnectionReset))
        setting_.connector->reset(address_of(kOnlyCluster, static_cast<int>(chance.below(2))));
      if (setting_.faults.fires(Fault::kActorKilled)) {
        static const std::vector<std::string> kinds = {
            "subchannel", "subchannel", "subchannel_map", "policy"};
        stage_.kill(chance.one_of(kinds), chance);
      }
      strike_soon();
    });
  }

  Duration length() {
    FakeChance& chance = setting_.chance;
    return chance.percent(70) ? chance.between(milliseconds(1), milliseconds(400))
                              : chance.between(seconds(1), seconds(8));
  }

  // --- calls ---

  void start() {
    const std::uint64_t number = ++started_;
    StreamCall& call = calls_[number];
    call.seed = setting_.chance.next();
    call.length = length();
    pick(number, call);
  }

  void pick(std::uint64_t number, StreamCall& call) {
    router_.repick(call.pick, {.path = "/a/x", .seed = call.seed});
    // A call that gets no connection waits for the next snapshot.
    if (call.pick.outcome() != PickOutcome::kComplete) return;
    const auto* const lanes = testing::FakeConnector::lanes_of(*call.pick.connection());
    if (lanes == nullptr && call.pick.connection()->takes_calls()) return run(number, call);
    if (lanes == nullptr) return call.pick.put_off();
    switch (lanes->take(call.pick)) {
      case lb::StreamLanes::Answer::kTaken:
        return run_on_stream(number, call);
      case lb::StreamLanes::Answer::kFull:
        return wait(number, call, *lanes);
      case lb::StreamLanes::Answer::kGone:
        call.pick.put_off();
    }
  }

  void wait(std::uint64_t number, StreamCall& call, const lb::StreamLanes& lanes) {
    ++waits_;
    note(number, "waits for a stream of " + call.pick.connection()->address().str());
    call.wait = lanes.wait([this, number] {
      setting_.clock.after(setting_.chance.between(Duration::zero(), milliseconds(2)),
                           [this, number] { claim(number); });
    });
    if (call.wait->is_over()) claim(number);
  }

  void claim(std::uint64_t number) {
    const auto found = calls_.find(number);
    if (found == calls_.end() || found->second.wait == nullptr) return;
    StreamCall& call = found->second;
    switch (call.wait->claim(call.pick)) {
      case lb::StreamWait::Answer::kWaiting:
        return;
      case lb::StreamWait::Answer::kTaken:
        call.wait = nullptr;
        return run_on_stream(number, call);
      case lb::StreamWait::Answer::kLost:
      case lb::StreamWait::Answer::kGone:
        call.wait = nullptr;
        call.pick.put_off();
        pick(number, call);
    }
  }

  void run_on_stream(std::uint64_t number, StreamCall& call) {
    call.has_stream = true;
    run(number, call);
    const auto on_connection = std::ranges::count_if(calls_, [&](const auto& entry) {
      return entry.second.has_stream && entry.second.runs &&
             entry.second.pick.connection() == call.pick.connection();
    });
    setting_.complaints.require(on_connection <= std::ptrdiff_t{limit_},
                                "no connection has more calls than its server allows [A105-8]",
                                call.pick.connection()->address().str());
  }

  void run(std::uint64_t number, StreamCall& call) {
    note(number, "runs on " + call.pick.connection()->address().str());
    setting_.complaints.require(call.pick.connection()->takes_calls(),
                                "a call gets a connection that is open [A105-9]");
    call.runs = true;
    setting_.clock.after(call.length, [this, number] {
      note(number, "ends");
      calls_.at(number).pick.end(0);
      calls_.erase(number);
      setting_.reclaimer->sweep();
    });
  }

  void ask_again() {
    std::vector<std::uint64_t> waiting;
    for (const auto& [number, call] : calls_) {
      const bool is_old = call.pick.sequence() != router_.sequence();
      if (!call.runs && call.wait == nullptr && is_old) waiting.push_back(number);
    }
    for (const std::uint64_t number : waiting)
      pick(number, calls_.at(number));
    setting_.reclaimer->sweep();
  }

  void note(std::uint64_t number, const std::string& what) {
    setting_.trace.note(setting_.clock.now(), absl::StrCat("call ", number), what);
  }

  // --- the invariant ---

  // Whether a connection to the host runs fewer calls than it allows, with those of others.
  bool has_free_stream(const Address& host) const {
    return std::ranges::any_of(setting_.connector->open(), [&](const auto& standing) {
      const Connection* const connection = standing.connection.get();
      if (connection->address() != host) return false;
      const auto ours = std::ranges::count_if(calls_, [&](const auto& entry) {
        return entry.second.runs && entry.second.pick.connection() == connection;
      });
      const auto of_others = std::ranges::count_if(
          others_, [&](const auto& entry) { return entry.second.get() == connection; });
      return ours + of_others < std::ptrdiff_t{limit_};
    });
  }

  bool has_waiting_call(const Address& host) const {
    return std::ranges::any_of(calls_, [&](const auto& entry) {
      return entry.second.wait != nullptr && entry.second.pick.connection()->address() == host;
    });
  }

  void check() {
    const Instant now = setting_.clock.now();
    for (int number = 0; number < 2; ++number) {
      const Address host = address_of(kOnlyCluster, number);
      std::optional<Instant>& since = missed_since_[number];
      const bool is_missed = has_waiting_call(host) && has_free_stream(host);
      if (!is_missed) since.reset();
      if (is_missed && !since) since = now;
      setting_.complaints.require(!since || now - *since <= kPatience,
                                  "no call waits while a connection has a free stream [A105-16]",
                                  host.str());
    }
  }

  Setting setting_;
  Stage stage_;
  ClusterModel cluster_;
  std::shared_ptr<lb::SnapshotCell> cell_;
  lb::Router router_;
  std::uint32_t limit_ = 1;  ///< The most calls that a server allows on a connection.
  protocol::SupervisorActor supervisor_;
  std::map<std::uint64_t, StreamCall> calls_;
  std::map<std::uint64_t, Use> others_;  ///< The calls of others, with their connections.
  std::uint64_t started_ = 0;
  std::uint64_t started_others_ = 0;
  std::uint64_t waits_ = 0;
  bool is_calm_ = false;
  /// By the number of a host: since when a call waits although there is a free stream.
  std::map<int, std::optional<Instant>> missed_since_;
};

}  // namespace

StreamsRun run_streams(std::uint64_t seed) {
  StreamsWorld world(seed);
  return world.run(seed);
}

}  // namespace signalbox::sim
