// SPDX-License-Identifier: Apache-2.0
//
// ConnectionSecurity — what is known of a connection's security when the connection fails.
//
//   gRPC: "Socket closed" ─▶ [with_question] ─▶ "Socket closed; the connection is plaintext: does
//                                                 the server want TLS?"
//
// gRPC 1.51 does not say what the server wants, or which check a certificate failed. So the added
// texts ask a question, unless a second connection has found the cause (connection_credentials).

#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "messages/cluster_settings.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::actors {

struct ConnectionSecurity {
  enum class Kind { kUnknown, kPlaintext, kTls };

  /// kUnknown: the program made the credentials, so their kind is not known.
  Kind kind = Kind::kUnknown;
  bool has_identity = false;  ///< The client has a certificate for servers that ask for one.
  std::string roots = {};     ///< Says where the root certificates are from, for error texts.
};

/// The security of connections to a control plane.
ConnectionSecurity security_of(const xds::ChannelCredentials& configured);

/// The security of connections to the endpoints of a cluster with TLS.
ConnectionSecurity security_of(const UpstreamTls& tls);

/// Whether `reason`, gRPC's text, says that the server's certificate was refused.
bool is_certificate_refused(absl::string_view reason);

/// Returns `reason`, gRPC's text for a connection that was not made, and appends `verdict`, the
/// verdict on the server's certificate. If `verdict` is empty, appends a question that names a
/// likely cause, if one is known for this reason and security.
std::string with_question(absl::string_view reason,
                          const ConnectionSecurity& security,
                          absl::string_view verdict = "");

}  // namespace signalbox::actors
