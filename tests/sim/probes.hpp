// SPDX-License-Identifier: Apache-2.0
//
// Probes — health checks of the simulated backends, some of whom flap.
//
//   health_checker ─▶ [Probes] ◀─ how the backend is, and whether it is the hour to fail
//
// It has no dice: whether an address fails its probes in some two seconds is drawn from seed,
// address and time alone, so that the stories of seeds stay what they are.

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

  /// From now on nobody flaps.
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
