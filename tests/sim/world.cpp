// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

#include "tests/sim/quiescence.hpp"
#include "tests/sim/resources.hpp"
#include "xds/parse/parse_resource.hpp"

namespace signalbox::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kListener[] = "orders";
constexpr const char* kPaths[] = {"/a/x", "/b/x", "/c/x"};
constexpr Duration kTurmoil = seconds(30);

}  // namespace

class World::Listener final : public actors::PublicationListener {
 public:
  Listener(Setting& setting, Calls& calls) : setting_(setting), calls_(calls) {}

  void published(std::uint64_t sequence, ConnectivityState state) override {
    setting_.trace.note(setting_.clock.now(),
                        "channel",
                        absl::StrCat("publishes ", absl::string_view(to_string(state))),
                        sequence);
    setting_.complaints.require(lb::SnapshotCell::Reader(*setting_.cell)->sequence == sequence,
                                "what is announced is published");
    calls_.published();
  }

 private:
  Setting& setting_;
  Calls& calls_;
};

World::World(std::uint64_t seed, std::ostream* out)
    : seed_(seed),
      setting_(seed, out),
      stage_(setting_.clock, setting_.chance, setting_.complaints, setting_.trace),
      faults_(setting_, stage_),
      calls_(setting_),
      topology_(make_topology(setting_.chance)),
      listener_(std::make_shared<Listener>(setting_, calls_)) {}

World::~World() {
  supervisor_ = nullptr;
  stage_.clear();
  calls_.end_all();
  setting_.clock.clear();
  setting_.cell->exchange(std::make_unique<const lb::Snapshot>());
  setting_.reclaimer->end_world();
}

Outcome World::run() {
  open();
  turmoil();
  if (setting_.complaints.empty()) calm();
  if (setting_.complaints.empty()) stop();
  Outcome outcome;
  outcome.hash = setting_.trace.hash() ^ setting_.control_plane->hash_of_requests();
  outcome.steps = setting_.trace.steps();
  outcome.calls = calls_.started();
  outcome.broken = setting_.complaints.sentences();
  if (!outcome.broken.empty()) {
    std::ostringstream story;
    story << "the world:" << text_of(topology_) << '\n';
    setting_.trace.print_last(story);
    outcome.story = story.str();
  }
  return outcome;
}

// --- the three acts ---------------------------------------------------------

void World::open() {
  for (int number = 0; number < 7; ++number) {
    const std::string cluster = absl::StrCat("c", number);
    for (const char* prefix : {"", "late-"}) {
      const std::string name = absl::StrCat(prefix, "dns", number, ".example:443");
      setting_.name_lookup->set(DnsName(name), dns_answer(cluster, name));
    }
  }
  actors::Environment environment;
  environment.connector = setting_.connector;
  environment.ads_transport = setting_.control_plane;
  environment.name_lookup = setting_.name_lookup;
  environment.reclaimer = setting_.reclaimer;
  environment.instruments = std::make_shared<metrics::Instruments>();
  environment.decode_response = [](absl::string_view bytes) { return xds::decode_response(bytes); };
  environment.node_bytes = node_bytes();
  environment.node_id = "simulated";
  environment.seed = seed_;
  environment.detached_lookups = false;
  supervisor_ = actors::spawn_supervisor(
      stage_.system(), std::make_shared<const actors::Environment>(std::move(environment)));
  auto port = std::make_shared<actors::ChannelPort>();
  port->target = absl::StrCat("xds:///", kListener);
  port->listener_resource = kListener;
  port->authority = kListener;
  port->cell = setting_.cell;
  port->listener = listener_;
  port_ = std::move(port);
  protocol::post(supervisor_, protocol::OpenChannel{port_});
}

void World::turmoil() {
  setting_.clock.set_grid(setting_.chance.one_of(
      std::vector<Duration>{Duration(1), milliseconds(5), milliseconds(20), milliseconds(50)}));
  serve_all();
  change_soon();
  call_soon();
  fault_soon();
  if (faults_.has(Fault::kMachineBusy)) starve_soon();
  pass(kTurmoil);
  in_turmoil_ = false;
}

// After all that went wrong has been told: back-offs end, what was dropped is dropped. Retention
// of priorities that are not needed is the longest wait: fifteen minutes.
void World::calm() {
  faults_.end();
  if (!pass(seconds(15))) return;
  touch_everything(topology_);
  serve_all();
  if (!pass(seconds(120))) return;
  probe_routes();
  if (!pass(seconds(20))) return;
  every_response_was_answered(setting_, setting_.complaints);
  calls_go_to_the_best_hosts(calls_, topology_, setting_.complaints);
  nobody_waits_without_a_reason(calls_, topology_, setting_.complaints);
  const auto standing = setting_.connector->standing();
  move_all_hosts(topology_);
  serve_all();
  if (!pass(seconds(20))) return;
  hosts_that_move_keep_their_connections(standing, setting_, topology_, setting_.complaints);
  encore();
  if (!pass(minutes(16))) return;
  calls_.forget_endings();
  probe_routes();
  if (!pass(seconds(20))) return;
  calls_go_to_the_best_hosts(calls_, topology_, setting_.complaints);
  subscribed_is_what_can_be_reached(setting_, kListener, topology_, setting_.complaints);
  connections_are_those_that_are_needed(setting_, topology_, setting_.complaints);
}

// Whoever dies now had applied all that it was given: it must come back with exactly that, and
// with what is told to it while it is dead.
void World::encore() {
  const std::size_t victims = setting_.chance.below(4);
  for (std::size_t i = 0; i < victims; ++i)
    faults_.kill_somebody();
  if (!pass(setting_.chance.between(Duration::zero(), milliseconds(250)))) return;
  for (int i = 0; i < 4; ++i)
    serve(mutate(topology_, setting_.chance));
  touch_everything(topology_);
  serve_all();
  if (!pass(seconds(60))) return;
  calls_.forget_endings();
  probe_routes();
  if (!pass(seconds(20))) return;
  calls_go_to_the_best_hosts(calls_, topology_, setting_.complaints);
  nobody_waits_without_a_reason(calls_, topology_, setting_.complaints);
}

void World::stop() {
  protocol::stop(supervisor_);
  supervisor_ = nullptr;
  if (!pass(minutes(1))) return;
  setting_.complaints.require(stage_.living() == 0,
                              "nothing is left after the end",
                              absl::StrCat(stage_.living(), " actors"));
  calls_.end_all();
  setting_.cell->exchange(std::make_unique<const lb::Snapshot>());
  setting_.reclaimer->sweep();
  if (!pass(minutes(1))) return;
  setting_.reclaimer->sweep();
  nothing_is_left(setting_, stage_, setting_.complaints);
  const auto alive =
      std::ranges::count_if(published_, [](const auto& picker) { return !picker.expired(); });
  setting_.complaints.require(
      alive == 0, "nothing is left after the end", absl::StrCat(alive, " pickers"));
}

// --- time and checks --------------------------------------------------------

bool World::pass(Duration duration) {
  const Instant end = setting_.clock.now() + duration;
  while (setting_.complaints.empty() && stage_.step(end))
    check();
  return setting_.complaints.empty();
}

void World::check() {
  const lb::SnapshotCell::Reader snapshot(*setting_.cell);
  if (snapshot->sequence != checked_sequence_) {
    checked_sequence_ = snapshot->sequence;
    sequence_and_generation_never_fall(*snapshot, last_, setting_.complaints);
    clusters_of_the_selector_are_clusters_of_the_picker(*snapshot, setting_.complaints);
    a_cluster_in_use_is_in_the_tree(*snapshot, calls_, setting_.complaints);
    published_.push_back(snapshot->picker);
  }
  uses_of_a_cluster_are_the_calls_that_hold_it(calls_, setting_.complaints);
  no_call_waits_past_its_deadline(calls_, setting_.clock.now(), setting_.complaints);
}

// --- history ----------------------------------------------------------------

void World::change_soon() {
  setting_.clock.after(setting_.chance.between(milliseconds(50), milliseconds(2500)), [this] {
    if (!in_turmoil_) return;
    serve(mutate(topology_, setting_.chance));
    change_soon();
  });
}

void World::call_soon() {
  setting_.clock.after(setting_.chance.between(milliseconds(5), milliseconds(300)), [this] {
    if (!in_turmoil_) return;
    start_call();
    call_soon();
  });
}

void World::fault_soon() {
  setting_.clock.after(setting_.chance.between(milliseconds(50), milliseconds(1500)), [this] {
    if (!in_turmoil_) return;
    faults_.strike(topology_);
    fault_soon();
  });
}

void World::starve_soon() {
  setting_.clock.after(setting_.chance.between(milliseconds(10), milliseconds(400)), [this] {
    if (!in_turmoil_) return;
    stage_.starve_somebody(setting_.chance.between(milliseconds(1), milliseconds(300)));
    // Much arrives while he is behind.
    if (setting_.chance.percent(25)) serve(mutate(topology_, setting_.chance));
    if (setting_.chance.percent(50)) {
      setting_.connector->reset(address_of("c" + std::to_string(setting_.chance.below(7)),
                                           static_cast<int>(setting_.chance.below(5))));
    }
    starve_soon();
  });
}

void World::start_call() {
  FakeChance& chance = setting_.chance;
  const std::string path = kPaths[chance.below(std::size(kPaths))];
  if (faults_.has(Fault::kSlowReaders) && chance.percent(15)) {
    calls_.start_slow_read(path,
                           chance.between(Duration::zero(), milliseconds(500)),
                           chance.between(Duration::zero(), seconds(5)));
    return;
  }
  if (chance.percent(3)) protocol::post(supervisor_, protocol::ChannelExitIdle{port_});
  Calls::Plan plan;
  plan.path = path;
  plan.wait_for_ready = chance.percent(30);
  if (chance.percent(60)) plan.deadline = chance.between(milliseconds(10), seconds(20));
  plan.length = chance.percent(80) ? chance.between(Duration::zero(), milliseconds(200))
                                   : chance.between(seconds(1), seconds(12));
  calls_.start(plan);
}

void World::probe_routes() {
  for (const char* path : kPaths) {
    for (int i = 0; i < 12; ++i)
      calls_.probe(path, seconds(10));
  }
}

// --- what the control plane is told -----------------------------------------

void World::serve(const std::set<std::string>& touched) {
  setting_.trace.note(setting_.clock.now(), "world", absl::StrCat("is", text_of(topology_)));
  auto& server = *setting_.control_plane;
  for (const std::string& name : touched) {
    const auto found = topology_.clusters.find(name);
    if (found == topology_.clusters.end()) {
      if (!name.empty()) server.remove(ResourceType::kCluster, name);
      continue;
    }
    for (const std::string& child : found->second.children)
      calls_.may_reach(name, child);
    server.set(ResourceType::kCluster, name, cluster_bytes(name, found->second));
    if (found->second.kind == ClusterKind::kEds)
      server.set(ResourceType::kEndpoints, name, endpoints_bytes(name, found->second));
  }
  server.set(ResourceType::kListener, kListener, listener_bytes(kListener, topology_));
  server.set(ResourceType::kRouteConfig, topology_.route_name, route_bytes(topology_));
}

void World::serve_all() {
  std::set<std::string> all{""};
  for (const auto& [name, cluster] : topology_.clusters)
    all.insert(name);
  serve(all);
}

}  // namespace signalbox::sim
