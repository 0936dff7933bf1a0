// SPDX-License-Identifier: Apache-2.0
//
// CredentialsSource — the credentials of connections to a control plane.
//
//   xds::ChannelCredentials ─▶ [make_credentials] ─▶ CredentialsSource ─▶ grpc_ads_transport
//
// `insecure` is plaintext (A27). `tls` is TLS, and mTLS with a certificate (A65). If the
// credentials of `tls` cannot be made, the connection fails; plaintext is never used instead.

#pragma once

#include <functional>

#include "absl/status/statusor.h"

#include "actors/io/connection_credentials.hpp"
#include "actors/io/tls_files.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::actors {

/// Returns the credentials of a new connection, or the error with which it fails. Thread-safe;
/// called for each connection.
using CredentialsSource = std::function<absl::StatusOr<ConnectionCredentials>()>;

/// `complain` is called if certificates cannot be read and older certificates stay in use. `show`
/// receives the TlsFiles in use (ShowFiles).
CredentialsSource make_credentials(const xds::ChannelCredentials& configured,
                                   TlsFiles::Complain complain,
                                   const ShowFiles& show = nullptr);

}  // namespace signalbox::actors
