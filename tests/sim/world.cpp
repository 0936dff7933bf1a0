// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/channel_port.hpp"
#include "tests/sim/books.hpp"
#include "tests/sim/environment.hpp"
#include "tests/sim/promises.hpp"
#include "tests/sim/quiescence.hpp"
#include "tests/sim/resources.hpp"
#include "xds/parse/response_parser.hpp"

namespace signalbox::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kTurmoil = seconds(45);
// Outlier detection judges only hosts with at least this many calls.
constexpr std::ptrdiff_t kVolume = 2;
// The most steps of a seed. The longest seeds take some 50,000.
constexpr std::uint64_t kMostStepsOfAWorld = 1'000'000;

}  // namespace

class World::Listener final : public actors::PublicationListener {
 public:
  Listener(Setting& setting, std::string target, const lb::SnapshotCell& cell, Calls& calls)
      : setting_(setting), target_(std::move(target)), cell_(cell), calls_(calls) {}

  void published(std::uint64_t sequence, ConnectivityState state) override {
    setting_.trace.note(setting_.clock.now(),
                        target_,
                        absl::StrCat("channel publishes ", absl::string_view(to_string(state))),
                        sequence);
    setting_.complaints.require(lb::SnapshotCell::Reader(cell_)->sequence == sequence,
                                "what is announced is published");
    calls_.published();
  }

 private:
  Setting& setting_;
  std::string target_;
  const lb::SnapshotCell& cell_;
  Calls& calls_;
};

World::World(std::uint64_t seed, const absl::optional<testing::Menu>& menu, std::ostream* out)
    : seed_(seed),
      setting_(seed, menu ? FakeFaults(seed, *menu) : FakeFaults(seed), out),
      stage_(setting_.clock, setting_.chance, setting_.faults, setting_.complaints, setting_.trace),
      topology_(make_topology(setting_.chance)),
      faults_(setting_, stage_, topology_, [this](FakeChance& dice) { change(dice); }) {
  // These settings have random numbers of their own, so that they change no other draw of the
  // seed.
  FakeChance dice(~seed);
  topology_.tiered = dice.percent(30);
  topology_.panic_percent = dice.one_of(std::vector<unsigned>{0, 0, 50});
  // No host is in zone d. Without a zone, zone-aware routing has no effect.
  topology_.zone = dice.one_of(std::vector<std::string>{"a", "a", "b", "c", "d", ""});
}

World::~World() {
  supervisor_ = nullptr;
  stage_.clear();
  for (Channel& channel : channels_)
    channel.calls->end_all();
  setting_.clock.clear();
  for (Channel& channel : channels_)
    channel.cell->exchange(std::make_unique<const lb::Snapshot>());
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
  for (const Channel& channel : channels_)
    outcome.calls += channel.calls->started();
  outcome.drains = drains_;
  outcome.menu = setting_.faults.menu();
  outcome.fired = setting_.faults.fired();
  outcome.broken = setting_.complaints.sentences();
  if (!outcome.broken.empty()) {
    std::ostringstream story;
    story << "the world:" << text_of(topology_) << '\n';
    setting_.trace.print_last(story);
    outcome.story = story.str();
  }
  return outcome;
}

// --- the acts ---------------------------------------------------------------

void World::open() {
  for (std::size_t number = 0; number < kClusters; ++number) {
    const std::string cluster = cluster_name(number);
    for (const char* prefix : {"", "late-"}) {
      const std::string name = absl::StrCat(prefix, "dns", number, ".example:443");
      setting_.name_lookup->set(DnsName(name), dns_answer(cluster, name));
    }
  }
  actors::Environment environment = environment_of(setting_, seed_);
  environment.health_prober = setting_.probes;
  environment.ads_transports = {setting_.control_plane};
  environment.load_transports = {setting_.load_server};
  environment.instruments = instruments_;
  // Responses are decoded in parts of one resource, of a few, or of all. The seed decides what
  // happens between two parts.
  environment.make_decoder = [this](ServerId) -> xds::ResponseDecoder {
    return [this](std::string bytes) {
      const auto part_size =
          setting_.chance.one_of(std::vector<std::size_t>{1, 1500, 4000, xds::kPartSize});
      return xds::decode_in_parts(std::move(bytes), {}, nullptr, part_size);
    };
  };
  environment.node_bytes = node_bytes(topology_.zone);
  environment.policy.request_limits = request_limits_;
  environment.policy.load_book = load_book_;
  if (topology_.tiered) environment.policy.aggregate_mode = AggregateMode::kTiered;
  environment.policy.panic_threshold = topology_.panic_percent;
  if (!topology_.zone.empty()) environment.policy.caller = {kRegion, topology_.zone, ""};
  supervisor_ = actors::spawn_supervisor(
      stage_.system(), std::make_shared<const actors::Environment>(std::move(environment)));
  channels_.reserve(topology_.targets.size());
  for (const TargetModel& target : topology_.targets)
    open_channel(target);
}

void World::open_channel(const TargetModel& target) {
  Channel& channel = channels_.emplace_back();
  channel.cell = std::make_shared<lb::SnapshotCell>();
  channel.calls = std::make_unique<Calls>(setting_, target.listener, channel.cell);
  auto port = std::make_shared<actors::ChannelPort>();
  port->target = absl::StrCat("xds:///", target.listener);
  port->listener_resource = target.listener;
  port->authority = target.listener;
  port->cell = channel.cell;
  port->listener =
      std::make_shared<Listener>(setting_, target.listener, *channel.cell, *channel.calls);
  for (std::size_t i = 0; i < kClients; ++i)
    channel.calls->add_client(kPaths[i % std::size(kPaths)]);
  channel.port = std::move(port);
  protocol::post(supervisor_, protocol::OpenChannel{channel.port});
}

void World::turmoil() {
  setting_.clock.set_grid(setting_.chance.one_of(
      std::vector<Duration>{Duration(1), milliseconds(5), milliseconds(20), milliseconds(50)}));
  serve_all();
  change_soon();
  call_soon();
  faults_.begin();
  pass(kTurmoil);
  in_turmoil_ = false;
}

// Ends all faults, and lets time pass until the world is at rest: all back-offs have ended, and the
// last configuration is in use. Checks the world, and then runs day(), drains(), eject_somebody()
// and encore(). At the end the world rests again, for longer than unneeded priorities are kept (15
// minutes), and is checked once more.
void World::calm() {
  faults_.end();
  setting_.load_server->say(minutes(1));
  if (!pass(seconds(15))) return;
  touch_everything(topology_);
  serve_all();
  if (!settle(seconds(120))) return;
  limits_.clear();  // Calls that began under the turmoil's limits have ended.
  note_limits();
  probe_routes();
  ask_all_clients();
  if (!pass(seconds(20))) return;
  every_response_was_answered(setting_, setting_.complaints);
  check_calls();
  const auto standing = setting_.connector->standing();
  move_all_hosts(topology_);
  serve_all();
  if (!pass(seconds(20))) return;
  hosts_that_move_keep_their_connections(standing, setting_, topology_, setting_.complaints);
  day();
  if (!setting_.complaints.empty()) return;
  drains();
  // Waits for the next sweep of outlier detection, so that it does not count earlier successes of a
  // host that now answers badly.
  if (!setting_.complaints.empty() || !pass(seconds(3))) return;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (!eject_somebody(channels_[i], topology_.targets[i])) return;
  }
  encore();
  // Longer than anything unneeded is kept: priorities for 15 minutes, hosts of sessions for about
  // 10, because encore() has shortened the idle timeouts (shorten_idle_timeouts).
  if (!pass(minutes(16))) return;
  forget_endings();
  probe_routes();
  if (!pass(seconds(20))) return;
  check_calls();
  check_books();
  if (!report_all()) return;
  subscribed_is_what_can_be_reached(setting_, topology_, setting_.complaints);
  connections_are_those_that_are_needed(setting_, topology_, setting_.complaints);
  for (const Channel& channel : channels_) {
    const lb::SnapshotCell::Reader snapshot(*channel.cell);
    no_note_is_left_of_a_lost_control_plane(*snapshot, setting_.complaints);
  }
}

// Makes one host answer badly while the world is at rest, and checks that outlier detection ejects
// the host within some seconds. A later check_calls() checks that the host is used again. Returns
// false if an invariant is broken.
bool World::eject_somebody(Channel& channel, const TargetModel& target) {
  const auto suspect =
      find_suspect(*lb::SnapshotCell::Reader(*channel.cell), target, topology_, setting_.drops);
  if (!suspect) return true;
  const auto is_set_aside = [&] {
    return !is_chosen(*lb::SnapshotCell::Reader(*channel.cell), *suspect, setting_.drops);
  };
  const auto failures = [&] {
    return std::ranges::count_if(channel.calls->endings(), [&](const auto& entry) {
      return entry.second.cluster == suspect->cluster && entry.second.address == suspect->host;
    });
  };
  forget_endings();
  setting_.connector->set_answers_badly(suspect->host, true);
  // Makes enough calls for one sweep. The paths take turns, because their clusters may share a
  // limit of concurrent calls.
  for (int round = 0; round < 100 && failures() < 2 * kVolume && !is_set_aside(); ++round) {
    for (int i = 0; i < 4; ++i) {
      for (const char* path : kPaths)
        channel.calls->probe(path, seconds(10));
    }
    if (!pass(milliseconds(10))) return false;
  }
  for (int i = 0; i < 15 && !is_set_aside(); ++i) {
    if (!pass(milliseconds(100))) return false;
  }
  setting_.complaints.require(is_set_aside(),
                              "who answers badly is set aside [A50]",
                              absl::StrCat(suspect->cluster, ": ", suspect->host.str()));
  if (setting_.complaints.empty() && !loses_its_sessions(channel, target, *suspect)) return false;
  setting_.connector->set_answers_badly(suspect->host, false);
  forget_endings();
  return setting_.complaints.empty();
}

// Kills up to three actors that have applied their whole configuration. Each must restart with
// exactly that configuration, and with the updates that were sent before the restart. Calls of two
// minutes run meanwhile, although their routes may be removed.
void World::encore() {
  for (const Channel& channel : channels_) {
    for (const char* path : kPaths) {
      for (const bool wait_for_ready : {false, true})
        channel.calls->start({path, wait_for_ready, std::nullopt, seconds(120)});
    }
  }
  const std::size_t victims = setting_.chance.below(4);
  for (std::size_t i = 0; i < victims; ++i)
    faults_.kill_somebody(setting_.chance);
  if (!pass(setting_.chance.between(Duration::zero(), milliseconds(250)))) return;
  for (int i = 0; i < 4; ++i)
    change(setting_.chance);
  touch_everything(topology_);
  shorten_idle_timeouts(topology_);
  serve_all();
  if (!settle(seconds(60))) return;
  forget_endings();
  probe_routes();
  ask_all_clients();
  if (!pass(seconds(20))) return;
  check_calls();
}

void World::stop() {
  protocol::stop(supervisor_);
  supervisor_ = nullptr;
  if (!pass(minutes(1))) return;
  setting_.complaints.require(stage_.living() == 0,
                              "nothing is left after the end",
                              absl::StrCat(stage_.living(), " actors"));
  for (Channel& channel : channels_) {
    channel.calls->end_all();
    channel.cell->exchange(std::make_unique<const lb::Snapshot>());
    channel.last = {};
  }
  setting_.reclaimer->sweep();
  if (!pass(minutes(1))) return;
  setting_.reclaimer->sweep();
  nothing_is_left(setting_, stage_, setting_.complaints);
  gauges_end(Books(*instruments_), setting_.complaints);
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

// Passes `duration`. 20 s before its end, resends the resources that the client was allowed to miss
// (FakeControlPlane::resend_forgotten). Routes among them may name kGhost, a cluster that never
// exists: the client waits 15 s for it before it uses the routes.
bool World::settle(Duration duration) {
  constexpr Duration kAfterwards = seconds(20);
  if (!pass(duration - kAfterwards)) return false;
  setting_.control_plane->resend_forgotten();
  return pass(kAfterwards);
}

void World::check() {
  for (Channel& channel : channels_) {
    check_publication(channel);
    uses_of_a_cluster_are_the_calls_that_hold_it(*channel.calls, setting_.complaints);
    no_call_waits_past_its_deadline(*channel.calls, setting_.clock.now(), setting_.complaints);
  }
  check_limits();
  setting_.complaints.require(setting_.trace.steps() < kMostStepsOfAWorld,
                              "the world comes to rest");
}

void World::check_publication(Channel& channel) {
  const lb::SnapshotCell::Reader snapshot(*channel.cell);
  if (snapshot->sequence == channel.last.sequence) return;
  sequence_and_generation_never_fall(*snapshot, channel.last, setting_.complaints);
  clusters_of_the_selector_are_clusters_of_the_picker(
      *snapshot, setting_.drops, setting_.complaints);
  a_cluster_in_use_is_in_the_tree(*snapshot, *channel.calls, setting_.drops, setting_.complaints);
  published_.push_back(snapshot->picker);
}

void World::check_calls() {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    const TargetModel& target = topology_.targets[i];
    calls_go_to_the_best_hosts(*channels_[i].calls, target, topology_, setting_.complaints);
    nobody_waits_without_a_reason(*channels_[i].calls, target, topology_, setting_.complaints);
    clusters_of_calls_are_subscribed(*channels_[i].calls, setting_, setting_.complaints);
    sessions_stay_where_they_may(*channels_[i].calls, target, topology_, setting_.complaints);
    const lb::SnapshotCell::Reader snapshot(*channels_[i].cell);
    policies_keep_their_promises(
        *snapshot, target, topology_, *channels_[i].calls, setting_.drops, setting_.complaints);
  }
}

void World::check_limits() {
  std::uint64_t moves = 0;
  for (const Channel& channel : channels_)
    moves += channel.calls->moves();
  if (std::exchange(moves_, moves) == moves) return;
  std::map<std::string, std::int64_t> in_flight;
  for (const Channel& channel : channels_) {
    for (const auto& [leaf, calls] : channel.calls->in_flight())
      in_flight[leaf] += calls;
  }
  calls_in_flight_are_within_the_limit(in_flight, limits_, *request_limits_, setting_.complaints);
}

void World::check_books() {
  const Books books(*instruments_);
  gauges_are_what_lives(books, setting_, stage_, setting_.complaints);
  deaths_are_those_that_happened(books, stage_, setting_.complaints);
  active_priorities_are_the_best(books, topology_, setting_.complaints);
  loads_are_of_a_hundred(books, setting_, topology_, setting_.complaints);
  std::map<std::string, CallCounts> all;
  for (const Channel& channel : channels_) {
    for (const auto& [cluster, counts] : channel.calls->counts())
      all[cluster] += counts;
    const lb::SnapshotCell::Reader snapshot(*channel.cell);
    const double generation = books.sum(metrics::Metric::kConfigGeneration, {channel.port->target});
    setting_.complaints.require(generation == static_cast<double>(snapshot->generation),
                                "the generation that serves is told [I10]",
                                absl::StrCat(generation, ", not ", snapshot->generation));
  }
  calls_are_counted(books, all, setting_.complaints);
}

// Lets the load server ask for the loads that are not reported yet, and compares all reported loads
// with the calls that were made.
bool World::report_all() {
  setting_.load_server->say(seconds(1));
  if (!pass(seconds(5))) return false;
  std::map<std::string, testing::CallLoad> all;
  for (const Channel& channel : channels_) {
    for (const auto& [leaf, load] : channel.calls->loads())
      all[leaf] += load;
  }
  for (const auto& [leaf, drops] : setting_.drops.counts())
    all[leaf].drops = drops;
  loads_are_what_was_called(all, *load_book_, setting_, stage_, setting_.complaints);
  return setting_.complaints.empty();
}

void World::forget_endings() {
  for (Channel& channel : channels_)
    channel.calls->forget_endings();
}

// --- history ----------------------------------------------------------------

void World::change_soon() {
  setting_.clock.after(setting_.chance.between(milliseconds(50), milliseconds(2500)), [this] {
    if (!in_turmoil_) return;
    change(setting_.chance);
    // Makes another change within 20 ms: perhaps before the policies have applied this one.
    if (setting_.faults.fires(Fault::kConfigOvertaken)) {
      FakeChance& dice = setting_.faults.dice(Fault::kConfigOvertaken);
      setting_.clock.after(dice.between(Duration::zero(), milliseconds(20)),
                           [this, &dice] { change(dice); });
    }
    change_soon();
  });
}

void World::call_soon() {
  setting_.clock.after(setting_.chance.between(milliseconds(5), milliseconds(300)), [this] {
    if (!in_turmoil_) return;
    start_call(channels_[setting_.chance.below(channels_.size())]);
    call_soon();
  });
}

void World::change(FakeChance& dice) {
  serve(mutate(topology_, dice));
}

void World::start_call(Channel& channel) {
  FakeChance& chance = setting_.chance;
  const std::string path = kPaths[chance.below(std::size(kPaths))];
  for (const Fault fault : {Fault::kSlowReaders, Fault::kMidPickSwap}) {
    if (!setting_.faults.fires(fault)) continue;
    FakeChance& dice = setting_.faults.dice(fault);
    channel.calls->start_slow_read(path,
                                   dice.between(Duration::zero(), milliseconds(500)),
                                   dice.between(Duration::zero(), seconds(5)));
    if (fault == Fault::kMidPickSwap) change(dice);
    return;
  }
  if (chance.percent(3)) protocol::post(supervisor_, protocol::ChannelExitIdle{channel.port});
  Calls::Plan plan;
  plan.path = path;
  plan.wait_for_ready = chance.percent(30);
  if (chance.percent(60)) plan.deadline = chance.between(milliseconds(10), seconds(20));
  plan.length = chance.percent(80) ? chance.between(Duration::zero(), milliseconds(200))
                                   : chance.between(seconds(1), seconds(12));
  if (chance.percent(50)) {
    const auto client = std::next(channel.calls->clients().begin(),
                                  static_cast<std::ptrdiff_t>(chance.below(kClients)));
    plan.client = client->first;
    plan.path = client->second.path;
    if (chance.percent(5)) channel.calls->set_cookie(client->first, forge_cookie(chance));
  }
  channel.calls->start(plan);
}

void World::probe_routes() {
  for (std::size_t at = 0; at < channels_.size(); ++at) {
    const Channel& channel = channels_[at];
    ask_by_hash(
        *lb::SnapshotCell::Reader(*channel.cell), topology_.targets[at], topology_, setting_.drops);
    for (const char* path : kPaths) {
      for (int i = 0; i < 12; ++i)
        channel.calls->probe(path, seconds(10));
    }
  }
}

// Raises each cluster's entry in limits_ to the cluster's limit of calls. A lower limit does not
// lower the entry, because calls that began under the higher limit may still run.
void World::note_limits() {
  for (const auto& [name, cluster] : topology_.clusters) {
    unsigned& most = limits_[name];
    most = std::max(most, cluster.max_requests);
  }
}

// --- the control plane's resources ------------------------------------------

void World::serve(const std::set<std::string>& touched) {
  setting_.trace.note(setting_.clock.now(), "world", absl::StrCat("is", text_of(topology_)));
  note_limits();
  needs_.note(topology_, setting_.clock.now());
  auto& server = *setting_.control_plane;
  for (const std::string& name : touched) {
    const auto found = topology_.clusters.find(name);
    if (found == topology_.clusters.end()) {
      if (!name.empty()) server.remove(ResourceType::kCluster, name);
      continue;
    }
    for (const std::string& child : found->second.children) {
      for (const Channel& channel : channels_)
        channel.calls->may_reach(name, child);
    }
    server.set(ResourceType::kCluster, name, cluster_bytes(name, found->second));
    if (found->second.kind == ClusterKind::kEds)
      server.set(ResourceType::kEndpoints, name, endpoints_bytes(name, found->second));
  }
  for (const TargetModel& target : topology_.targets) {
    server.set(ResourceType::kListener, target.listener, listener_bytes(target));
    server.set(ResourceType::kRouteConfig, target.route_name, route_bytes(target));
  }
}

void World::serve_all() {
  std::set<std::string> all{""};
  for (const auto& [name, cluster] : topology_.clusters)
    all.insert(name);
  serve(all);
}

}  // namespace signalbox::sim
