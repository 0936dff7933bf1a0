// SPDX-License-Identifier: Apache-2.0
#include "actors/io/xds_credentials.hpp"

#include <memory>
#include <utility>
#include <variant>

namespace signalbox::actors {

CredentialsSource make_credentials(const xds::ChannelCredentials& configured,
                                   TlsFiles::Complain complain,
                                   const ShowFiles& show) {
  const auto* tls = std::get_if<xds::TlsCredentials>(&configured);
  if (tls == nullptr)
    return [] { return ConnectionCredentials{grpc::InsecureChannelCredentials()}; };

  const auto files = std::make_shared<TlsFiles>(tls->files, std::move(complain));
  if (show) show(files);
  return [files]() -> absl::StatusOr<ConnectionCredentials> {
    auto read = files->read();
    if (!read.ok()) return read.status();
    const auto texts = std::make_shared<const PemTexts>(*std::move(read));
    return ConnectionCredentials{grpc::SslCredentials({.pem_root_certs = texts->roots,
                                                       .pem_private_key = texts->private_key,
                                                       .pem_cert_chain = texts->certificate_chain}),
                                 texts};
  };
}

}  // namespace signalbox::actors
