// SPDX-License-Identifier: Apache-2.0
//
// Probes — health checks of the simulated backends; some backends flap.
//
//   health_checker ─▶ [Probes] ◀─ the backend's state, and the times at which it flaps
//
// In a fifth of all intervals of two seconds, a backend fails its probes although it is up. A hash
// of seed, address and time chooses these intervals. Probes draw no random numbers, so they do not
// change the draws of the rest of the simulation.

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

  /// From now on every backend that is up passes its probes.
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
