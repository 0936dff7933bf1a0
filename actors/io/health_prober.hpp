// SPDX-License-Identifier: Apache-2.0
//
// HealthProber — asks an endpoint whether it is fit, as a health check has it.
//
//   health_checker actor ─▶ Probe::begin ─▶ [turns] ─▶ gRPC: over a connection of the connector's
//                        ◀─ ProbeAnswer                HTTP, TCP: over a socket of its own
//
// Invariants
//   Q1  Of each begin(), `answer` is called once, unless the Probe is destroyed before; never from
//       inside begin().
//   Q2  An answer that is under way when its Probe is destroyed may still come: so it owns what it
//       needs, and whoever hears it knows late answers.
//   Q3  The check's timeout counts from the probe's turn, and bounds the whole probe. A probe by
//       gRPC that has no connection yet has the timeout twice: to connect, then to ask.
//   Q4  At most `most_at_once` probes are under way; the others begin in the order in which they
//       were wanted, and say that they were delayed.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "actors/io/connector.hpp"
#include "messages/cluster_settings.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox::actors {

struct ProbeAnswer {
  ProbeOutcome outcome = ProbeOutcome::kFailed;
  std::string why;       ///< Of one that did not pass.
  bool delayed = false;  ///< Q4.
};

class HealthProber {
 public:
  struct Target {
    Peer peer;
    ClusterName cluster;  ///< Whom HTTP and gRPC name where the check does not.
  };

  using Answer = std::function<void(ProbeAnswer)>;

  /// One check of one endpoint, for as long as it is wanted. Not thread-safe.
  class Probe {
   public:
    Probe() = default;
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;
    virtual ~Probe() = default;

    /// Precondition: no other one is under way. Never blocks.
    virtual void begin(Answer answer) = 0;
  };

  virtual ~HealthProber() = default;

  /// Thread-safe, never blocks. The prober outlives its probes.
  virtual std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) = 0;
};

/// See Q4; more open files than that are not needed.
inline constexpr std::size_t kMostProbesAtOnce = 256;

/// Lets the probes of `prober` begin by turns (Q4).
std::shared_ptr<HealthProber> make_prober_with_turns(std::shared_ptr<HealthProber> prober,
                                                     std::size_t most_at_once = kMostProbesAtOnce);

/// All kinds of probe, by turns. `connector` makes connections that are gRPC channels.
/// An error where the system has no open files left.
absl::StatusOr<std::shared_ptr<HealthProber>> make_health_prober(
    std::shared_ptr<Connector> connector);

}  // namespace signalbox::actors
