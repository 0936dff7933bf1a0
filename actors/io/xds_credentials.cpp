// SPDX-License-Identifier: Apache-2.0
#include "actors/io/xds_credentials.hpp"

#include <utility>
#include <variant>

namespace signalbox::actors {

CredentialsSource make_credentials(const xds::ChannelCredentials& configured,
                                   TlsFiles::Complain complain,
                                   const ShowFiles& show) {
  const auto* tls = std::get_if<xds::TlsCredentials>(&configured);
  if (tls == nullptr) return [] { return grpc::InsecureChannelCredentials(); };

  const auto files = std::make_shared<TlsFiles>(tls->files, std::move(complain));
  if (show) show(files);
  return [files]() -> absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> {
    const auto texts = files->read();
    if (!texts.ok()) return texts.status();
    return grpc::SslCredentials({.pem_root_certs = texts->roots,
                                 .pem_private_key = texts->private_key,
                                 .pem_cert_chain = texts->certificate_chain});
  };
}

}  // namespace signalbox::actors
