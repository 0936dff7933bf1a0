// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/sim/resources.hpp"

namespace signalbox::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::BackendState;

namespace {

Address any_host(FakeChance& dice) {
  const std::string cluster = cluster_name(dice.below(kClusters));
  return address_of(cluster, static_cast<int>(dice.below(kHosts)));
}

}  // namespace

void Faults::begin() {
  for (const testing::FaultRow& row : testing::fault_table()) {
    if (row.opportunity == testing::Opportunity::kNow && setting_.faults.has(row.fault))
      strike_soon(row.fault);
  }
}

// Each fault fires at random times of its own, independent of the other faults.
void Faults::strike_soon(Fault fault) {
  FakeChance& dice = setting_.faults.dice(fault);
  setting_.clock.after(dice.between(milliseconds(20), milliseconds(600)), [this, fault, &dice] {
    if (over_) return;
    if (setting_.faults.fires(fault)) strike(fault, dice);
    strike_soon(fault);
  });
}

void Faults::strike(Fault fault, FakeChance& dice) {
  setting_.trace.note(
      setting_.clock.now(), "world", absl::StrCat("strikes: ", testing::text_of({fault})));
  switch (fault) {
    case Fault::kStreamReset:
      setting_.control_plane->drop_streams();
      break;
    case Fault::kLoadStreamReset:
      setting_.load_server->drop_streams();
      break;
    case Fault::kReporterKilled:
      stage_.kill("load_reporter", dice);
      break;
    case Fault::kServerRestart:
      setting_.control_plane->restart();
      break;
    case Fault::kBadResource:
    case Fault::kGarbageResource:
      spoil_resource(fault == Fault::kGarbageResource, dice);
      break;
    case Fault::kConfigStorm:
      for (int i = 0; i < 12; ++i)
        change_(dice);
      break;
    case Fault::kActorKilled:
    case Fault::kActorStarved:
    case Fault::kFrozen:
      strike_actors(fault, dice);
      break;
    default:
      strike_backend(fault, dice);
      break;
  }
}

// --- actors -----------------------------------------------------------------

void Faults::strike_actors(Fault fault, FakeChance& dice) {
  if (fault == Fault::kActorKilled) {
    kill_somebody(dice);
  } else if (fault == Fault::kFrozen) {
    stage_.freeze(dice.between(milliseconds(10), seconds(5)));
  } else {
    stage_.starve_somebody(dice.between(milliseconds(1), milliseconds(300)), dice);
    // A change of configuration now sends many messages to the starved actor.
    if (dice.percent(25)) change_(dice);
    if (dice.percent(50)) setting_.connector->reset(any_host(dice));
  }
}

void Faults::kill_somebody(FakeChance& dice) {
  static const std::vector<std::string> kinds = {"policy",
                                                 "policy",
                                                 "policy",
                                                 "subchannel",
                                                 "subchannel_map",
                                                 "sweeper",
                                                 "xds_watcher",
                                                 "xds_client",
                                                 "ads_stream",
                                                 "dns",
                                                 "channel"};
  stage_.kill(dice.one_of(kinds), dice);
}

// --- backends ---------------------------------------------------------------

// Strikes one host, every host of a cluster, or the hosts of several clusters. A struck host may
// recover.
void Faults::strike_backend(Fault fault, FakeChance& dice) {
  if (fault == Fault::kBackendFlaps) return flap(any_host(dice), 5);
  if (fault == Fault::kSwizzleClog) return swizzle_clog(dice);
  if (fault == Fault::kBackendErrs) return err_for_a_while(any_host(dice), dice);
  const std::string cluster = cluster_name(dice.below(kClusters));
  const bool all = dice.percent(40);
  const auto chosen = static_cast<int>(dice.below(kHosts));
  for (int host = 0; host < kHosts; ++host) {
    if (!all && host != chosen) continue;
    const Address address = address_of(cluster, host);
    if (fault == Fault::kConnectionReset) {
      setting_.connector->reset(address);
    } else if (dice.percent(40)) {
      setting_.connector->set_state(address, BackendState::kUp);
    } else {
      setting_.connector->set_state(
          address,
          fault == Fault::kBackendRefuses ? BackendState::kRefusing : BackendState::kBlackholed);
    }
  }
}

void Faults::set_later(const Address& address, BackendState state, Duration delay) {
  setting_.clock.after(delay, [this, address, state] {
    if (!over_) setting_.connector->set_state(address, state);
  });
}

void Faults::flap(const Address& address, int times) {
  for (int i = 0; i < times; ++i) {
    set_later(address, BackendState::kRefusing, milliseconds(400) * i);
    set_later(address, BackendState::kUp, milliseconds(400) * i + milliseconds(200));
  }
}

void Faults::err_for_a_while(const Address& address, FakeChance& dice) {
  setting_.connector->set_answers_badly(address, true);
  setting_.clock.after(dice.between(seconds(1), seconds(10)),
                       [this, address] { setting_.connector->set_answers_badly(address, false); });
}

// Stops the hosts of about half of the clusters one by one, and brings them back in random order.
void Faults::swizzle_clog(FakeChance& dice) {
  for (std::size_t number = 0; number < kClusters; ++number) {
    if (dice.percent(50)) continue;
    for (int host = 0; host < kHosts; ++host) {
      const Address address = address_of(cluster_name(number), host);
      const auto how = dice.percent(50) ? BackendState::kRefusing : BackendState::kBlackholed;
      set_later(address, how, dice.between(Duration::zero(), seconds(3)));
      set_later(address, BackendState::kUp, dice.between(seconds(3), seconds(6)));
    }
  }
}

// --- resources --------------------------------------------------------------

void Faults::spoil_resource(bool garbage, FakeChance& dice) {
  auto chosen = topology_.clusters.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(dice.below(topology_.clusters.size())));
  const std::string& cluster = chosen->first;
  const TargetModel& target = topology_.targets[dice.below(topology_.targets.size())];
  const auto spoil = [&](ResourceType type, const std::string& name, std::string bad) {
    setting_.control_plane->set(type, name, garbage ? garbage_bytes() : std::move(bad), false);
  };
  switch (dice.below(4)) {
    case 0:
      spoil(ResourceType::kCluster, cluster, bad_cluster_bytes(cluster));
      break;
    case 1:
      spoil(ResourceType::kEndpoints, cluster, bad_endpoints_bytes(cluster));
      break;
    case 2:
      spoil(ResourceType::kRouteConfig, target.route_name, bad_route_bytes(target.route_name));
      break;
    default:
      spoil(ResourceType::kListener, target.listener, bad_listener_bytes(target.listener));
      break;
  }
}

void Faults::end() {
  over_ = true;
  setting_.faults.end();
  setting_.control_plane->close_silent();
  setting_.load_server->close_silent();
  setting_.connector->all_up();
  setting_.probes->end_flapping();
  stage_.freeze(Duration::zero());
}

}  // namespace signalbox::sim
