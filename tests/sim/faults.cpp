// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults.hpp"

#include <chrono>
#include <vector>

#include "tests/sim/resources.hpp"

namespace signalbox::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::BackendState;

Faults::Faults(Setting& setting, Stage& stage) : setting_(setting), stage_(stage) {
  for (int fault = 0; fault < kFaults; ++fault) {
    if (setting_.chance.percent(40)) menu_.insert(static_cast<Fault>(fault));
  }
  if (has(Fault::kSlowHandshakes)) setting_.connector->set_slowest_handshake(seconds(8));
  if (has(Fault::kMachineBusy)) stage_.set_stall(milliseconds(200));
  if (has(Fault::kNamesFail)) setting_.name_lookup->set_failing(40);
}

void Faults::strike(const Topology& topology) {
  if (menu_.empty()) return;
  const Fault fault = setting_.chance.one_of(std::vector<Fault>(menu_.begin(), menu_.end()));
  switch (fault) {
    case Fault::kBackendRefuses:
    case Fault::kBackendBlackholed:
    case Fault::kConnectionReset:
      strike_backend(fault);
      break;
    case Fault::kStreamReset:
      setting_.control_plane->drop_streams();
      break;
    case Fault::kServerRestart:
      setting_.control_plane->restart();
      break;
    case Fault::kServerRefuses:
    case Fault::kServerSilent:
    case Fault::kServerAnswersOnce:
    case Fault::kServerSlow:
    case Fault::kServerLosesStreams:
    case Fault::kServerPartial:
      strike_server(fault);
      break;
    case Fault::kBadResource:
      spoil_resource(topology);
      break;
    case Fault::kActorKilled:
      kill_somebody();
      break;
    case Fault::kSlowHandshakes:
    case Fault::kNamesFail:
    case Fault::kMachineBusy:
    case Fault::kSlowReaders:
      break;  // Not events, but how this world is.
  }
}

// One host, or every host of a cluster; what was struck before may recover.
void Faults::strike_backend(Fault fault) {
  FakeChance& chance = setting_.chance;
  const std::string cluster = "c" + std::to_string(chance.below(7));
  const bool all = chance.percent(40);
  const auto chosen = static_cast<int>(chance.below(5));
  for (int host = 0; host < 5; ++host) {
    if (!all && host != chosen) continue;
    const Address address = address_of(cluster, host);
    if (fault == Fault::kConnectionReset) {
      setting_.connector->reset(address);
    } else if (chance.percent(40)) {
      setting_.connector->set_state(address, BackendState::kUp);
    } else {
      setting_.connector->set_state(
          address,
          fault == Fault::kBackendRefuses ? BackendState::kRefusing : BackendState::kBlackholed);
    }
  }
}

// The server's mood changes, for better or worse; sometimes its clients notice at once.
void Faults::strike_server(Fault fault) {
  const auto dice = [&](unsigned percent) { return setting_.chance.percent(50) ? 0 : percent; };
  if (fault == Fault::kServerRefuses) mood_.refuses = dice(80);
  if (fault == Fault::kServerSilent) mood_.silent = dice(60);
  if (fault == Fault::kServerAnswersOnce) mood_.answers_once = dice(80);
  if (fault == Fault::kServerLosesStreams) mood_.loses_stream = dice(20);
  if (fault == Fault::kServerPartial) mood_.partial = dice(50);
  if (fault == Fault::kServerSlow) {
    mood_.slowest = setting_.chance.percent(50) ? Duration(milliseconds(20)) : seconds(6);
  }
  setting_.control_plane->set_mood(mood_);
  if (setting_.chance.percent(40)) setting_.control_plane->drop_streams();
  if (setting_.chance.percent(40)) setting_.control_plane->close_silent();
}

void Faults::spoil_resource(const Topology& topology) {
  auto chosen = topology.clusters.begin();
  std::advance(chosen,
               static_cast<std::ptrdiff_t>(setting_.chance.below(topology.clusters.size())));
  const std::string& name = chosen->first;
  auto& server = *setting_.control_plane;
  switch (setting_.chance.below(3)) {
    case 0:
      server.set(ResourceType::kCluster, name, bad_cluster_bytes(name), false);
      break;
    case 1:
      server.set(ResourceType::kEndpoints, name, bad_endpoints_bytes(name), false);
      break;
    default:
      server.set(ResourceType::kRouteConfig,
                 topology.route_name,
                 bad_route_bytes(topology.route_name),
                 false);
      break;
  }
}

void Faults::kill_somebody() {
  static const std::vector<std::string> kinds = {"policy",
                                                 "policy",
                                                 "policy",
                                                 "subchannel",
                                                 "subchannel_map",
                                                 "xds_watcher",
                                                 "xds_client",
                                                 "ads_stream",
                                                 "dns",
                                                 "channel"};
  stage_.kill(setting_.chance.one_of(kinds));
}

void Faults::end() {
  menu_.clear();
  mood_ = {};
  setting_.control_plane->set_mood(mood_);
  setting_.control_plane->close_silent();
  setting_.connector->all_up();
  setting_.connector->set_slowest_handshake(milliseconds(20));
  setting_.name_lookup->set_failing(0);
  stage_.set_stall(Duration::zero());
}

}  // namespace signalbox::sim
