// SPDX-License-Identifier: Apache-2.0
//
// GrpcProber — probes by grpc.health.v1.Health/Check.
//
//   Probe::begin ─▶ connector ─▶ connection ─▶ Check ─▶ SERVING, or another status
//
// The connection is the connector's: the subchannel's own while it has one, else a connection that
// is made for the probe. It is kept until the probe is destroyed or the connection is lost. So a
// probe is usually just a call, and as secure as the cluster's calls.
//
// As in Envoy, a server without the service, or without a health service, counts as refusing.

#pragma once

#include <memory>
#include <utility>

#include "actors/io/health_prober.hpp"

namespace signalbox::actors {

class GrpcProber final : public HealthProber {
 public:
  /// All connections of `connector` must be gRPC channels.
  explicit GrpcProber(std::shared_ptr<Connector> connector) : connector_(std::move(connector)) {}

  /// `check` must be by gRPC.
  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override;

 private:
  const std::shared_ptr<Connector> connector_;
};

}  // namespace signalbox::actors
