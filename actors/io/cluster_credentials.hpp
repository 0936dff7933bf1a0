// SPDX-License-Identifier: Apache-2.0
//
// ClusterCredentials — what the next connection to an endpoint is secured with, where its cluster
// asks for TLS (gRFC A29).
//
//   UpstreamTls ──────────────────────────┐
//   bootstrap's certificate_providers ─▶ [make_cluster_credentials] ─▶ grpc::ChannelCredentials
//
//   roots      whom the server must be certified by: the provider's ca_certificate_file
//   identity   what we show where the server asks for it: its certificate_file and private_key_file
//   names      lb/subchannel/peer_names; gRPC's own check of the server's name is off
//
// Files are read again for new connections, a second after the last time or, if that is sooner,
// after refresh_interval; connections that stand are not touched. While a file cannot be used, the
// last good ones are, and `complain` is told once. What was never good is the connection's error,
// which names instance, field, file and reason: there is never a connection with less.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include <grpcpp/security/credentials.h>

#include "actors/io/tls_files.hpp"
#include "messages/cluster_settings.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::actors {

/// Thread-safe; asked for each connection.
using ClusterCredentials =
    std::function<absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>(const UpstreamTls&)>;

/// `providers`: by instance name.
ClusterCredentials make_cluster_credentials(
    const std::map<std::string, xds::CertificateFiles>& providers, TlsFiles::Complain complain);

}  // namespace signalbox::actors
