// SPDX-License-Identifier: Apache-2.0
#include "actors/io/xds_credentials.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>
#include <variant>

#include <grpcpp/security/credentials.h>

#include "actors/io/connection_security.hpp"

namespace signalbox::actors {
namespace {

// Whether the environment lets gRPC take the roots from the system, where the verdict on a
// certificate looks for them. Each of these variables of gRPC can make gRPC look elsewhere. So can
// grpc_set_ssl_roots_override_callback(), which this function does not see.
bool has_system_roots() {
  static constexpr std::array kVariables{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                                         "GRPC_NOT_USE_SYSTEM_SSL_ROOTS",
                                         "GRPC_SYSTEM_SSL_ROOTS_DIR"};
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  return std::ranges::none_of(kVariables, is_set);
}

}  // namespace

CredentialsSource make_credentials(const xds::ChannelCredentials& configured,
                                   TlsFiles::Complain complain,
                                   const ShowFiles& show) {
  const auto* tls = std::get_if<xds::TlsCredentials>(&configured);
  if (tls == nullptr)
    return [] { return ConnectionCredentials{grpc::InsecureChannelCredentials()}; };

  const auto files = std::make_shared<TlsFiles>(tls->files, std::move(complain));
  if (show) show(files);
  return [files, name = security_of(configured).roots]() -> absl::StatusOr<ConnectionCredentials> {
    const auto texts = files->read();
    if (!texts.ok()) return texts.status();
    ConnectionCredentials made{grpc::SslCredentials({.pem_root_certs = texts->roots,
                                                     .pem_private_key = texts->private_key,
                                                     .pem_cert_chain = texts->certificate_chain})};
    if (!texts->roots.empty() || has_system_roots())
      made.explaining = explaining_credentials(texts->roots, name);
    return made;
  };
}

}  // namespace signalbox::actors
