// SPDX-License-Identifier: Apache-2.0
//
// ClusterCredentials — the credentials of connections to endpoints of clusters with TLS (gRFC A29).
//
//   UpstreamTls ──────────────────────────┐
//   bootstrap's certificate_providers ─▶ [make_cluster_credentials] ─▶ ConnectionCredentials
//
//   roots      authorities that may sign the server's certificate: ca_certificate_file
//   identity   the client's certificate, for servers that ask for one: certificate_file,
//              private_key_file
//   names      lb/subchannel/peer_names; gRPC's own check of the server's name is off
//
// A new connection reads the files again if the last reading is older than one second, or than
// refresh_interval if that is shorter. Connections that are already made do not change. While a
// file cannot be used, the last good files stay in use, and `complain` is called once for the
// fault. If files were never good, the connection fails with an error that names instance, field,
// file and reason. No connection that carries calls is made with less security instead.

#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"

#include "actors/io/connection_credentials.hpp"
#include "actors/io/tls_files.hpp"
#include "messages/cluster_settings.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::actors {

/// Returns the credentials of a connection with these TLS settings, or the error with which the
/// connection fails. Thread-safe; called for each connection.
using ClusterCredentials = std::function<absl::StatusOr<ConnectionCredentials>(const UpstreamTls&)>;

/// `providers` maps the names of provider instances to their files. `show` receives each TlsFiles
/// in use (ShowFiles).
ClusterCredentials make_cluster_credentials(
    const std::map<std::string, xds::CertificateFiles>& providers,
    TlsFiles::Complain complain,
    const ShowFiles& show = nullptr);

}  // namespace signalbox::actors
