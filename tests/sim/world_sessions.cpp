// SPDX-License-Identifier: Apache-2.0
//
// The acts of a world about sessions: a day of sessions, and drains under load.

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/sim/quiescence.hpp"
#include "tests/sim/world.hpp"

namespace signalbox::sim {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

bool any_sessions(const Topology& topology) {
  return std::ranges::any_of(topology.targets, &TargetModel::sessions);
}

// Sets the interval of outlier detection. During a simulated day the interval is long: with an
// interval of a second, most steps of the day would be sweeps of outlier detection.
void set_ejection_interval(Topology& topology, unsigned interval) {
  for (auto& [name, cluster] : topology.clusters)
    cluster.ejection_seconds = interval;
}

HostModel* host_at(Topology& topology, const Address& address) {
  const auto* found = find_host(std::as_const(topology.clusters.at(owner_of(address))), address);
  return const_cast<HostModel*>(found);
}

}  // namespace

// --- a simulated day of sessions (world.hpp): hours with faults, then quiet -----

void World::day() {
  if (!any_sessions(topology_)) return;
  set_ejection_interval(topology_, 3600);
  const std::size_t rounds = 1 + setting_.chance.below(3);
  for (std::size_t i = 0; i < rounds && setting_.complaints.empty(); ++i)
    day_hour();
  set_ejection_interval(topology_, 1);
  shorten_idle_timeouts(topology_);
  serve_all();
  if (setting_.complaints.empty()) pass(seconds(20));
}

// Makes trouble (a new configuration, failing hosts, dead actors) while clients call. Once the
// world is at rest again, each session must be on an allowed host. Then the clients make no calls
// for a moment or for hours.
void World::day_hour() {
  FakeChance& chance = setting_.chance;
  trouble_somebody();
  call_as_anybody(seconds(5), milliseconds(200));
  setting_.connector->all_up();
  complete(topology_);
  set_ejection_interval(topology_, 3600);
  serve_all();
  call_as_anybody(seconds(10), milliseconds(500));
  if (!setting_.complaints.empty() || !settle(seconds(60))) return;
  limits_.clear();
  note_limits();
  forget_endings();
  for (const Channel& channel : channels_) {
    for (const char* path : kPaths)
      channel.calls->probe(path, seconds(10));
  }
  ask_all_clients();
  if (!pass(seconds(15))) return;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    const TargetModel& target = topology_.targets[i];
    calls_go_to_the_best_hosts(*channels_[i].calls, target, topology_, setting_.complaints);
    sessions_stay_where_they_may(*channels_[i].calls, target, topology_, setting_.complaints);
  }
  const Duration idle = chance.one_of(std::vector<Duration>{
      seconds(1), seconds(30), minutes(2), minutes(15), minutes(40), hours(2)});
  if (!pass(idle)) return;
  std::map<Address, Instant> wished;
  for (const Channel& channel : channels_) {
    for (const auto& [address, when] : channel.calls->wished())
      wished[address] = std::max(wished[address], when);
  }
  needs_.nobody_is_kept_for_nothing(wished, topology_, setting_, setting_.complaints);
}

// At random: changes the configuration, makes a host fail for a while, kills an actor.
void World::trouble_somebody() {
  FakeChance& chance = setting_.chance;
  const std::size_t changes = chance.below(4);
  for (std::size_t i = 0; i < changes; ++i)
    change(chance);
  if (chance.percent(40)) {
    // The host of a client's session; a random host if the client has no such cookie.
    const auto& clients = channels_[chance.below(channels_.size())].calls->clients();
    const auto client =
        std::next(clients.begin(), static_cast<std::ptrdiff_t>(chance.below(kClients)));
    const auto cookie = read_cookie(client->second.cookie);
    const Address host = cookie ? cookie->hosts.front()
                                : address_of(cluster_name(chance.below(kClusters)),
                                             static_cast<int>(chance.below(kHosts)));
    if (chance.percent(50)) {
      setting_.connector->reset(host);
    } else {
      setting_.connector->set_state(host, testing::BackendState::kRefusing);
    }
  }
  if (chance.percent(30)) {
    faults_.kill_somebody(chance);
    needs_.note_death(setting_.clock.now());
  }
}

void World::call_as_anybody(Duration duration, Duration between) {
  FakeChance& chance = setting_.chance;
  const Instant end = setting_.clock.now() + duration;
  while (setting_.clock.now() < end && setting_.complaints.empty()) {
    Channel& channel = channels_[chance.below(channels_.size())];
    const auto client = std::next(channel.calls->clients().begin(),
                                  static_cast<std::ptrdiff_t>(chance.below(kClients)));
    if (chance.percent(2)) channel.calls->set_cookie(client->first, forge_cookie(chance));
    channel.calls->start({client->second.path,
                          false,
                          seconds(10),
                          chance.between(Duration::zero(), milliseconds(200)),
                          client->first});
    pass(chance.between(Duration::zero(), 2 * between));
  }
}

void World::ask_all_clients() {
  for (const Channel& channel : channels_) {
    std::vector<std::pair<std::uint64_t, std::string>> clients;
    for (const auto& [number, client] : channel.calls->clients())
      clients.emplace_back(number, client.path);
    for (const auto& [number, path] : clients)
      channel.calls->probe({path, false, seconds(10), Duration::zero(), number});
  }
}

// --- ejected hosts --------------------------------------------------------------

// For each path with sessions, makes a call with a forged cookie that names suspect.cluster and the
// ejected host. Complains if the call ends at this host in this cluster. A call that fails, or that
// another cluster gets, is no complaint. Returns whether there are no complaints.
bool World::loses_its_sessions(Channel& channel,
                               const TargetModel& target,
                               const Suspect& suspect) {
  for (const char* path : kPaths) {
    if (!has_sessions(target, path)) continue;
    const std::uint64_t client = channel.calls->add_client(path);
    channel.calls->set_cookie(client, write_cookie({{suspect.host}, suspect.cluster}));
    const std::uint64_t call =
        channel.calls->probe({path, false, seconds(1), Duration::zero(), client});
    if (!pass(milliseconds(100))) return false;
    const auto ended = channel.calls->endings().find(call);
    // Only calls of suspect.cluster are checked: every policy tree has its own outlier detection,
    // and the tree of another cluster may not have ejected the host.
    const bool stayed = ended != channel.calls->endings().end() &&
                        ended->second.cluster == suspect.cluster &&
                        ended->second.address == suspect.host;
    setting_.complaints.require(
        !stayed, "who is set aside is no session's host [A50, A55]", suspect.host.str());
    channel.calls->remove_client(client);
  }
  return setting_.complaints.empty();
}

// --- drains -----------------------------------------------------------------------

void World::drains() {
  if (!any_sessions(topology_)) return;
  for (std::size_t at = 0; at < channels_.size(); ++at) {
    for (const char* path : kPaths) {
      if (setting_.complaints.empty()) drain_somebody(at, path);
    }
  }
}

// Under load, drains a host that has sessions, sometimes moves it to another priority, and then
// removes it.
void World::drain_somebody(std::size_t at, const std::string& path) {
  Channel& channel = channels_[at];
  const TargetModel& target = topology_.targets[at];
  Calls& calls = *channel.calls;
  FakeChance& chance = setting_.chance;
  if (!has_sessions(target, path)) return;

  // Finds a suitable host: a new session has chosen it, and its cluster has another fit host.
  std::vector<std::uint64_t> pinned;
  std::optional<SessionCookieText> home;
  const auto leave = [&] {
    for (const std::uint64_t client : pinned)
      calls.remove_client(client);
  };
  const auto pin_another = [&] {
    const std::uint64_t client = calls.add_client(path);
    calls.start({path, false, seconds(10), Duration::zero(), client});
    if (!pass(milliseconds(50))) return false;
    const auto cookie = read_cookie(calls.clients().at(client).cookie);
    if (!home) home = cookie;
    if (cookie && home == cookie) {
      pinned.push_back(client);
    } else {
      calls.remove_client(client);
    }
    return home.has_value();
  };
  if (!pin_another()) return leave();
  const Address host = home->hosts.front();
  const std::string leaf = owner_of(host);
  const auto found = topology_.clusters.find(leaf);
  const bool does = found != topology_.clusters.end() && found->second.kind == ClusterKind::kEds &&
                    best_hosts(leaf, found->second).size() > 1;
  if (!does) return leave();
  for (int i = 0; i < 12; ++i) {
    if (!pin_another()) return leave();
  }

  ClusterModel& model = found->second;
  // In tiered mode the other leaves of the aggregate get calls too. Those calls must not be lost
  // either.
  std::map<std::string, ClusterModel> before{{leaf, model}};
  std::set<std::string> leaves{leaf};
  if (is_tiered(topology_, home->cluster)) {
    for (const std::string& other : leaves_of(topology_, home->cluster)) {
      leaves.insert(other);
      before.emplace(other, topology_.clusters.at(other));
    }
  }
  for (const std::string& one : leaves) {
    topology_.clusters.at(one).drop_percent = 0;
    topology_.clusters.at(one).max_requests = ClusterModel().max_requests;
  }
  model.may_stay = MayStay::kDrainingToo;
  model.idle_seconds = 600;
  serve(leaves);
  if (!pass(seconds(3))) return;

  struct Sent {
    std::uint64_t number;
    bool is_pinned;
    bool is_there;  ///< EDS has not removed the host yet.
    bool while_draining;
  };

  std::vector<Sent> sent;
  const auto call_for = [&](Duration duration, bool is_draining, bool is_there) {
    const Instant end = setting_.clock.now() + duration;
    while (setting_.clock.now() < end && setting_.complaints.empty()) {
      const bool is_pinned = chance.percent(50);
      Calls::Plan plan{path, false, seconds(10), chance.between({}, milliseconds(300))};
      if (is_pinned) {
        plan.client = pinned[chance.below(pinned.size())];
      } else if (chance.percent(50)) {
        plan.client = calls.add_client(path);
      }
      // A new client begins a session by this call and is removed after it: only pinned clients
      // call again.
      sent.push_back({calls.probe(plan), is_pinned, is_there, is_draining});
      if (plan.client && !is_pinned) calls.remove_client(*plan.client);
      pass(milliseconds(40));
    }
  };

  forget_endings();
  ++drains_;
  call_for(milliseconds(500), false, true);
  const auto connections = [&] { return setting_.connector->standing()[host]; };
  const std::set<std::uint64_t> connected = connections();
  host_at(topology_, host)->draining = true;
  serve({leaf});
  call_for(seconds(2), false, true);
  call_for(seconds(4), true, true);
  if (chance.percent(30)) {
    // Moves the host, with its settings unchanged, to another priority.
    const HostModel moved = *host_at(topology_, host);
    for (PriorityModel& priority : model.priorities) {
      for (LocalityModel& locality : priority)
        std::erase_if(locality.hosts,
                      [&](const auto& known) { return known.number == moved.number; });
    }
    model.priorities.push_back({{absl::StrCat("d", drains_), 1, {moved}}});
    serve({leaf});
    call_for(seconds(2), true, true);
  }
  // One of the earlier connections to the host is enough. Others may be gone: those of targets that
  // have no session on the host.
  setting_.complaints.require(
      std::ranges::any_of(connections(),
                          [&](std::uint64_t number) { return connected.contains(number); }),
      "a host that drains keeps its connection for its sessions [A75-34]",
      host.str());
  for (PriorityModel& priority : model.priorities) {
    for (LocalityModel& locality : priority) {
      std::erase_if(locality.hosts,
                    [&](const auto& known) { return address_of(leaf, known.number) == host; });
    }
  }
  serve({leaf});
  call_for(seconds(2), true, false);
  if (!pass(seconds(12))) return;

  for (const Sent& call : sent) {
    const auto ended = calls.endings().find(call.number);
    const std::string text = absl::StrCat("call ", call.number, " of ", host.str());
    const bool has_ended = ended != calls.endings().end();
    setting_.complaints.require(has_ended, "every call ends while a host drains [S13]", text);
    if (!has_ended) continue;
    // Calls that the route gave to other clusters do not count. A call that no cluster took is
    // lost.
    const auto& taker = ended->second.cluster;
    if (!taker.empty() && taker != home->cluster) continue;
    const bool completed = ended->second.state == CallState::kCompleted;
    setting_.complaints.require(completed, "no call is lost while a host drains [S13]", text);
    if (!completed) continue;
    const bool there = ended->second.address == host;
    setting_.complaints.require(!call.is_pinned || !call.is_there || there,
                                "every session of a host that drains stays until it goes [S13]",
                                text);
    setting_.complaints.require(call.is_pinned || !call.while_draining || !there,
                                "no session begins on a host that drains [S13]",
                                text);
  }
  leave();
  for (const auto& [one, as_it_was] : before)
    topology_.clusters.at(one) = as_it_was;
  serve(leaves);
  forget_endings();
  pass(seconds(15));
}

}  // namespace signalbox::sim
