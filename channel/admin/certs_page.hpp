// SPDX-License-Identifier: Apache-2.0
//
// certs_page — the certificate files of a runtime: the subjects, and until when they are valid.
//
//   bootstrap ─▶ [certificate_files] ─ read, as they are now ─▶ [certs_page], [certs_json]
//
// The bootstrap's private_key_file is neither read nor shown. /certs?format=json has the shape of
// envoy.admin.v3.Certificates: one entry for each CertificateUse, with "ca_cert" and "cert_chain".

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "actors/io/certificate_facts.hpp"
#include "signalbox/runtime_status.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::channel {

struct CertificateFile {
  std::string path;  ///< Empty: the bootstrap names no file.
  absl::Status status;
  std::vector<actors::CertificateFacts> certificates;
};

/// The files of one use: an xDS server, or an instance of a certificate provider.
struct CertificateUse {
  std::string use;  ///< "xDS server HOST:PORT", "certificate provider NAME".
  CertificateFile roots;
  CertificateFile chain;
};

/// Reads the certificate files that the bootstrap names, anew in each call. If xDS servers have the
/// same URI, only the files of the first one are read.
std::vector<CertificateUse> certificate_files(const xds::Bootstrap& bootstrap);

std::string certs_page(const std::vector<CertificateUse>& uses, const RuntimeStatus& status);

std::string certs_json(const std::vector<CertificateUse>& uses, WallTime now);

}  // namespace signalbox::channel
