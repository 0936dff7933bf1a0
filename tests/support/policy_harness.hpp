// SPDX-License-Identifier: Apache-2.0
//
// PolicyHarness — feeds one policy with one event at a time, and records the policy's effects.
//
//   harness.child("a", kReady) ─▶ Policy::step ─▶ the effects' texts; effects()
//
// Time stands still until advance(), which fires the timers that are due.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lb/policy.hpp"

namespace signalbox::test {

using namespace std::chrono_literals;

inline constexpr auto kIdle = ConnectivityState::kIdle;
inline constexpr auto kConnecting = ConnectivityState::kConnecting;
inline constexpr auto kReady = ConnectivityState::kReady;
inline constexpr auto kFailure = ConnectivityState::kTransientFailure;

/// An effect in a few words: "start a", "publish READY", "timer failover/a 10s", …
std::string to_text(const LbEffect& effect);
std::string to_text(const Observation& observation);
/// Whether the effect only tells the runtime's status about priorities. The texts of step() and the
/// other functions leave such effects out.
bool is_for_status(const LbEffect& effect);
/// An affinity result in words: "hit", "unknown host", …
std::string to_text(AffinityResult result);
/// A pick's outcome in a few words: "complete a", "queue", "fail UNAVAILABLE: why", "drop …".
std::string to_text(const PickResult& result);

/// A picker that only names its publisher: every pick fails with `name`.
PickerPtr named_picker(const std::string& name);

class PolicyHarness {
 public:
  explicit PolicyHarness(std::unique_ptr<lb::Policy> policy) : policy_(std::move(policy)) {}

  /// Each of these functions feeds events, and returns the texts of their effects in the order in
  /// which the policy asked for them.
  std::vector<std::string> step(const LbEvent& event);
  std::vector<std::string> update(LbConfigPtr config,
                                  XdsConfigPtr xds = nullptr,
                                  EndpointsPtr endpoints = nullptr);
  /// The child reports this state; its picker is named "<child> <state>".
  std::vector<std::string> child(const std::string& name, ConnectivityState state);
  std::vector<std::string> applied(const std::string& name);
  std::vector<std::string> applied(const std::string& name, Generation generation);
  std::vector<std::string> advance(Duration duration);

  Generation generation() const { return generation_; }

  /// All effects since the beginning.
  const LbEffects& effects() const { return effects_; }

  /// The last Publish effect, until the next step; null: there is none yet.
  const Publish* published() const;

  /// The outcome of a pick from the last published picker.
  std::string pick(const std::string& cluster = "", std::uint64_t seed = 0) const;

  template <typename Effect>
  std::size_t count() const {
    std::size_t count = 0;
    for (const LbEffect& effect : effects_)
      count += std::holds_alternative<Effect>(effect) ? 1 : 0;
    return count;
  }

 private:
  std::unique_ptr<lb::Policy> policy_;
  Instant now_{};
  Generation generation_ = 0;
  LbEffects effects_;
  std::multimap<Instant, TimerId> timers_;
};

}  // namespace signalbox::test
