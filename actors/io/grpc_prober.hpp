// SPDX-License-Identifier: Apache-2.0
//
// GrpcProber — probes by grpc.health.v1.Health/Check.
//
//   Probe::begin ─▶ connector ─▶ connection ─▶ Check ─▶ SERVING, or not
//
// The connection is the connector's, which the endpoint's subchannel shares while it has one; else
// it is made for the probe. It is kept until the probe is not wanted any more, or it is lost. So a
// probe is a call, as a rule, and secured as the cluster's calls are.
//
// As Envoy has it, a server that does not know the service, or has no health service, refuses.

#pragma once

#include <memory>
#include <utility>

#include "actors/io/health_prober.hpp"

namespace signalbox::actors {

class GrpcProber final : public HealthProber {
 public:
  /// Connections of `connector` are gRPC channels.
  explicit GrpcProber(std::shared_ptr<Connector> connector) : connector_(std::move(connector)) {}

  /// `check` is by gRPC.
  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override;

 private:
  const std::shared_ptr<Connector> connector_;
};

}  // namespace signalbox::actors
