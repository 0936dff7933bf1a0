// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/probes.hpp"

#include <chrono>
#include <utility>

#include "actors/seed.hpp"
#include "messages/pick.hpp"

namespace signalbox::sim {

using actors::ProbeAnswer;
using testing::BackendState;

class Probes::SimulatedProbe final : public Probe {
 public:
  SimulatedProbe(Probes& owner, Target target, Duration timeout)
      : owner_(owner), target_(std::move(target)), timeout_(timeout) {}

  void begin(actors::HealthProber::Answer answer) override {
    const Address& address = target_.peer.address;
    const bool is_silent = owner_.backends_.state_of(address) == BackendState::kBlackholed;
    const Duration wait = is_silent ? timeout_ : std::chrono::milliseconds(5);
    owner_.clock_.after(
        wait,
        [&owner = owner_, address, answer = std::move(answer), wanted = std::weak_ptr(alive_)] {
          if (!wanted.expired()) answer(owner.answer_of(address));
        });
  }

 private:
  Probes& owner_;
  const Target target_;
  const Duration timeout_;
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

std::unique_ptr<actors::HealthProber::Probe> Probes::prepare(const Target& target,
                                                             const HealthCheck& check) {
  return std::make_unique<SimulatedProbe>(*this, target, check.timeout);
}

ProbeAnswer Probes::answer_of(const Address& address) const {
  constexpr std::uint64_t kPercentUnfit = 20;
  const auto hour = clock_.now().time_since_epoch() / std::chrono::seconds(2);
  const std::uint64_t of_address = actors::seed_of(seed_, address.str());
  const bool flaps =
      draw_below(of_address, Salt::kEndpoint, 100, static_cast<std::uint64_t>(hour)) <
      kPercentUnfit;
  if (is_flapping_ && flaps) return {ProbeOutcome::kRefused, "it flaps", false};
  if (backends_.state_of(address) == BackendState::kUp) return {ProbeOutcome::kPassed, "", false};
  return {ProbeOutcome::kFailed, "it is down", false};
}

}  // namespace signalbox::sim
