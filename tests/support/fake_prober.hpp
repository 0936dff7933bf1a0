// SPDX-License-Identifier: Apache-2.0
//
// FakeProber — a HealthProber for tests: a probe waits until the test answers it. All calls of a
// FakeProber come from one thread.
//
//   health_checker ─▶ begin ─▶ [FakeProber] ◀─ answer(address, outcome) ─ the test

#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/io/health_prober.hpp"

namespace signalbox::test {

class FakeProber final : public actors::HealthProber {
 public:
  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override {
    if (deadly > 0) {
      --deadly;
      throw std::runtime_error("deadly");
    }
    return std::make_unique<FakeProbe>(*this, target, check);
  }

  /// The number of probes of the address that have begun and have no answer yet.
  std::size_t under_way(const std::string& address) const { return count(address, true); }

  /// The number of Probe objects of the address, whether or not a probe has begun.
  std::size_t prepared(const std::string& address) const { return count(address, false); }

  /// Answers every probe of the address that has begun.
  void answer(const std::string& address, ProbeOutcome outcome, const std::string& why = "no") {
    for (FakeProbe* probe : probes_) {
      if (probe->target.peer.address.str() == address && probe->answer != nullptr)
        std::exchange(probe->answer,
                      nullptr)({outcome, outcome == ProbeOutcome::kPassed ? "" : why});
    }
  }

  int begun = 0;   ///< Probes begun so far.
  int deadly = 0;  ///< This many further prepare() calls throw, which kills the calling actor.

 private:
  struct FakeProbe final : Probe {
    FakeProbe(FakeProber& prober, Target to, const HealthCheck& how)
        : owner(prober), target(std::move(to)), check(how) {
      owner.probes_.push_back(this);
    }

    ~FakeProbe() override { std::erase(owner.probes_, this); }

    void begin(Answer told) override {
      ++owner.begun;
      answer = std::move(told);
    }

    FakeProber& owner;
    const Target target;
    const HealthCheck check;
    Answer answer;
  };

  std::size_t count(const std::string& address, bool only_begun) const {
    std::size_t found = 0;
    for (const FakeProbe* probe : probes_) {
      const bool counts = !only_begun || probe->answer != nullptr;
      if (counts && probe->target.peer.address.str() == address) ++found;
    }
    return found;
  }

  std::vector<FakeProbe*> probes_;
};

}  // namespace signalbox::test
