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
//   Q3  The check's timeout counts from the probe's turn, and bounds the whole probe. Only a gRPC
//       probe that has no connection yet may take longer: its connector's attempt may wait for a
//       turn (attempt_turns.hpp), and it has the timeout once to connect, and once to ask.
//   Q4  At most `most_at_once` probes are in progress. Further probes wait, and begin in the order
//       of begin(). Their answers say that they were delayed.

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
  std::string why;       ///< Why the probe failed; empty for a passed probe.
  bool delayed = false;  ///< The probe had to wait for its turn (Q4).
};

class HealthProber {
 public:
  struct Target {
    Peer peer;
    /// The endpoint's cluster. HTTP and gRPC probes use its name as the host if the check has no
    /// host and the name is printable ASCII.
    ClusterName cluster;
  };

  using Answer = std::function<void(ProbeAnswer)>;

  /// Probes one endpoint by one check, each time begin() is called. Not thread-safe.
  class Probe {
   public:
    Probe() = default;
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;
    virtual ~Probe() = default;

    /// Begins a probe. `answer` gets the outcome. Precondition: no other probe of this object is in
    /// progress. Does not wait for the outcome, but may wait for a running callback of its attempt
    /// to connect.
    virtual void begin(Answer answer) = 0;
  };

  virtual ~HealthProber() = default;

  /// Makes a Probe of `target` by `check`, without beginning it. Thread-safe, never blocks.
  /// Precondition: the caller keeps the prober longer than its probes.
  virtual std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) = 0;
};

/// The default of `most_at_once` (Q4). It limits how many sockets the probes by HTTP and TCP use at
/// a time.
inline constexpr std::size_t kMostProbesAtOnce = 256;

/// Returns a prober that makes its probes by `prober`, at most `most_at_once` at a time (Q4).
std::shared_ptr<HealthProber> make_prober_with_turns(std::shared_ptr<HealthProber> prober,
                                                     std::size_t most_at_once = kMostProbesAtOnce);

/// Makes a prober for checks of all kinds. Its probes take turns (Q4). All connections of
/// `connector` must be gRPC channels. Returns an error if the operating system has no file
/// descriptor left for this process.
absl::StatusOr<std::shared_ptr<HealthProber>> make_health_prober(
    std::shared_ptr<Connector> connector);

}  // namespace signalbox::actors
