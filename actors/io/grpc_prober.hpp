// SPDX-License-Identifier: Apache-2.0
//
// GrpcProber — probes by grpc.health.v1.Health/Check.
//
//   Probe::begin ─▶ connector ─▶ connection ─▶ Check ─▶ SERVING, or another status
//
// The connector provides the connection: it shares the subchannel's own connection if that
// connection has the same connector and address, else it makes a connection for the probe. The
// probe keeps the connection until the probe is destroyed or the connection is lost. So a probe is
// usually just one call, which is as secure as the cluster's calls.
//
// If the server does not know the service, or has no health service, its answer counts as
// ProbeOutcome::kRefused, as in Envoy.
//
// A probe that does not reach the server's application, because of a GOAWAY or an ended connection,
// is ProbeOutcome::kUndone: a server that restarts gracefully is not unfit. Until a probe passes or
// is refused, each further one that does not reach the application has failed. In Envoy a GOAWAY
// with an error code fails the probe at once; gRPC 1.51 does not tell the code to calls.

#pragma once

#include <memory>
#include <utility>

#include "actors/io/health_prober.hpp"

namespace signalbox::actors {

class GrpcProber final : public HealthProber {
 public:
  /// All connections of `connector` must be gRPC channels.
  explicit GrpcProber(std::shared_ptr<Connector> connector) : connector_(std::move(connector)) {}

  /// `check` must be a gRPC check.
  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override;

 private:
  const std::shared_ptr<Connector> connector_;
};

}  // namespace signalbox::actors
