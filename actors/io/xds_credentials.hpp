// SPDX-License-Identifier: Apache-2.0
//
// CredentialsSource — what the next connection to a control plane is secured with.
//
//   xds::ChannelCredentials ─▶ [make_credentials] ─▶ CredentialsSource ─▶ grpc_ads_transport
//
// `insecure` is plaintext (A27); `tls` is TLS, and mTLS where there is a certificate (A65). A `tls`
// that cannot be had is an error of the connection, never plaintext.

#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include <grpcpp/security/credentials.h>

#include "actors/io/tls_files.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::actors {

/// Thread-safe; asked for each connection.
using CredentialsSource =
    std::function<absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>()>;

/// `complain` is told of certificates that cannot be read while older ones can be used.
CredentialsSource make_credentials(const xds::ChannelCredentials& configured,
                                   TlsFiles::Complain complain);

}  // namespace signalbox::actors
