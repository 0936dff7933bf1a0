// SPDX-License-Identifier: Apache-2.0
//
// HealthProber — probes an endpoint by a health check of its cluster.
//
//   health_checker actor ─▶ Probe::begin ─▶ [turns] ─▶ gRPC: over a connection of the connector
//                        ◀─ ProbeAnswer                HTTP, TCP: over a socket of the probe
//
// Invariants
//   Q1  For each begin(), `answer` is called once, unless the Probe is destroyed before; never
//       inside begin().
//   Q2  An answer may still come after its Probe was destroyed. So `answer` owns everything that it
//       needs, and its receiver must recognise late answers.
//   Q3  The check's timeout counts from the probe's turn, and bounds the whole probe. A probe by
//       gRPC without a connection has the timeout twice: to connect, and to ask.
//   Q4  At most `most_at_once` probes are in progress. Further probes begin in the order of
//       begin(), and report the delay.

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
  std::string why;       ///< Empty for a passed probe.
  bool delayed = false;  ///< Q4.
};

class HealthProber {
 public:
  struct Target {
    Peer peer;
    ClusterName cluster;  ///< The name for HTTP and gRPC if the check has none.
  };

  using Answer = std::function<void(ProbeAnswer)>;

  /// One check of one endpoint, as long as it is wanted. Not thread-safe.
  class Probe {
   public:
    Probe() = default;
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;
    virtual ~Probe() = default;

    /// Precondition: no other probe of this object is in progress. Never blocks.
    virtual void begin(Answer answer) = 0;
  };

  virtual ~HealthProber() = default;

  /// Thread-safe, never blocks. The prober outlives its probes.
  virtual std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) = 0;
};

/// See Q4. It bounds the open files of probes.
inline constexpr std::size_t kMostProbesAtOnce = 256;

/// Makes the probes of `prober` take turns (Q4).
std::shared_ptr<HealthProber> make_prober_with_turns(std::shared_ptr<HealthProber> prober,
                                                     std::size_t most_at_once = kMostProbesAtOnce);

/// Probes of all kinds, by turns. All connections of `connector` must be gRPC channels. An error
/// when the system has no open files left.
absl::StatusOr<std::shared_ptr<HealthProber>> make_health_prober(
    std::shared_ptr<Connector> connector);

}  // namespace signalbox::actors
