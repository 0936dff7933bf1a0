// SPDX-License-Identifier: Apache-2.0
//
// Setting — the parts of one seed's world other than its actors: time, random numbers, fakes and
// complaints.

#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <utility>

#include "tests/sim/drops.hpp"
#include "tests/sim/probes.hpp"
#include "tests/sim/trace.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"
#include "tests/support/fake_connector.hpp"
#include "tests/support/fake_control_plane.hpp"
#include "tests/support/fake_faults.hpp"
#include "tests/support/fake_load_server.hpp"
#include "tests/support/fake_load_streams.hpp"
#include "tests/support/fake_name_lookup.hpp"
#include "tests/support/fake_reclaimer.hpp"

namespace signalbox::sim {

using testing::FakeChance;
using testing::FakeClock;
using testing::FakeComplaints;
using testing::FakeFaults;
using testing::Fault;

/// The instant at which a world begins. It is far from 0, because a time of 0 may mean "never".
inline Instant begin_of_time() {
  return Instant(std::chrono::hours(1));
}

struct Setting {
  Setting(std::uint64_t seed, FakeFaults menu, std::ostream* out)
      : clock(begin_of_time()),
        chance(seed),
        faults(std::move(menu)),
        trace(begin_of_time(), out),
        reclaimer(std::make_shared<testing::FakeReclaimer>(clock, chance, faults)),
        connector(
            std::make_shared<testing::FakeConnector>(clock, chance, faults, complaints, reclaimer)),
        control_plane(
            std::make_shared<testing::FakeControlPlane>(clock, chance, faults, complaints)),
        load_server(std::make_shared<testing::FakeLoadServer>(clock, faults, complaints, seed)),
        load_streams(std::make_shared<testing::FakeLoadStreams>(clock, faults, complaints)),
        name_lookup(std::make_shared<testing::FakeNameLookup>(faults)),
        probes(std::make_shared<Probes>(clock, *connector, seed)) {}

  FakeClock clock;
  FakeChance chance;
  FakeFaults faults;
  FakeComplaints complaints;
  DropBook drops;
  Trace trace;
  std::shared_ptr<testing::FakeReclaimer> reclaimer;
  std::shared_ptr<testing::FakeConnector> connector;
  std::shared_ptr<testing::FakeControlPlane> control_plane;
  std::shared_ptr<testing::FakeLoadServer> load_server;
  std::shared_ptr<testing::FakeLoadStreams> load_streams;
  std::shared_ptr<testing::FakeNameLookup> name_lookup;
  std::shared_ptr<Probes> probes;
};

}  // namespace signalbox::sim
