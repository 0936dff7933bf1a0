// SPDX-License-Identifier: Apache-2.0
//
// ConnectionCredentials — gRPC's credentials of a connection, and the certificates in them.
//
//   cluster_credentials, xds_credentials ─▶ [ConnectionCredentials] ─▶ connector, ADS transport

#pragma once

#include <memory>

#include <grpcpp/security/credentials.h>

#include "actors/io/tls_files.hpp"

namespace signalbox::actors {

struct ConnectionCredentials {
  std::shared_ptr<grpc::ChannelCredentials> grpc;
  /// The certificates of which `grpc` was made; null: plaintext, or the program made `grpc`.
  std::shared_ptr<const PemTexts> texts = nullptr;

  friend bool operator==(const ConnectionCredentials&, const ConnectionCredentials&) = default;
};

}  // namespace signalbox::actors
