// SPDX-License-Identifier: Apache-2.0
//
// Probes — health checks of the simulated backends; some backends flap.
//
//   health_checker ─▶ [Probes] ◀─ the backend's state, and the hours in which it flaps
//
// Probes draws no random numbers: whether an address fails its probes for some two seconds follows
// from seed, address and time. So all other random numbers of a seed are the same as without
// probes.

#pragma once

#include <cstdint>
#include <memory>

#include "actors/io/health_prober.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_connector.hpp"

namespace signalbox::sim {

class Probes final : public actors::HealthProber {
 public:
  Probes(testing::FakeClock& clock, testing::FakeConnector& backends, std::uint64_t seed)
      : clock_(clock), backends_(backends), seed_(seed) {}

  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override;

  /// No backend flaps from now on.
  void end_flapping() { is_flapping_ = false; }

 private:
  class SimulatedProbe;

  actors::ProbeAnswer answer_of(const Address& address) const;

  testing::FakeClock& clock_;
  testing::FakeConnector& backends_;
  const std::uint64_t seed_;
  bool is_flapping_ = true;
};

}  // namespace signalbox::sim
