// SPDX-License-Identifier: Apache-2.0
//
// ConnectionCredentials — gRPC's credentials of a connection, and those of a second connection that
// finds out why the server's certificate was refused.
//
//   cluster_credentials, xds_credentials ─▶ [ConnectionCredentials] ─▶ connector, ADS transport
//
//   "certificate verify failed" ─▶ a channel with `explaining` ─▶ [explain_refusal] ─▶ the verdict
//
// gRPC 1.51 does not say why it refused a certificate, and shows the certificate only to a verifier
// that is asked after gRPC's own check. The second connection has no check by gRPC. Its verifier
// refuses every certificate, also a good one, and the verdict is the text of the refusal. So no
// call is ever sent on the second connection.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

namespace signalbox::actors {

struct ConnectionCredentials {
  std::shared_ptr<grpc::ChannelCredentials> grpc;
  /// The credentials of the second connection: explaining_credentials() with the roots of `grpc`.
  /// Null: no second connection is made, and no refusal is explained.
  std::shared_ptr<grpc::ChannelCredentials> explaining = nullptr;

  friend bool operator==(const ConnectionCredentials&, const ConnectionCredentials&) = default;
};

/// Credentials that refuse every certificate, and say what is wrong with it. `roots`, `name`: as
/// those of certificate_verdict().
std::shared_ptr<grpc::ChannelCredentials> explaining_credentials(std::string roots,
                                                                 std::string name);

/// Connects `channel`, which has explaining credentials, and drops it. Calls `explained` once, on
/// a thread of gRPC's executor, with the verdict on the server's certificate; empty: there is no
/// verdict within a second.
void explain_refusal(std::shared_ptr<grpc::Channel> channel,
                     std::function<void(const std::string& verdict)> explained);

}  // namespace signalbox::actors
