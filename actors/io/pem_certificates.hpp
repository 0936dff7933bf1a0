// SPDX-License-Identifier: Apache-2.0
//
// pem_certificates — the certificates of a PEM text, and what OpenSSL says about one of them.
//
//   PEM ─▶ [read_certificates] ─▶ X509 ─▶ [name_text, time_of, pem_text]
//
// Every function leaves OpenSSL's queue of errors empty.

#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <openssl/x509.h>

namespace signalbox::actors {

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

using CertificatePtr = std::unique_ptr<X509, FreeCertificate>;

struct PemCertificates {
  std::vector<CertificatePtr> certificates;
  /// False: a certificate is malformed. It and those after it are left out.
  bool is_whole = true;
};

/// Reads the certificates of a PEM text, in the text's order, but at most `most`.
PemCertificates read_certificates(absl::string_view pem,
                                  std::size_t most = std::numeric_limits<std::size_t>::max());

/// The name as text, such as "CN = orders, O = Shop". OpenSSL escapes control characters, quotes
/// and bytes above 0x7f.
std::string name_text(const X509_NAME* name);

/// OpenSSL's time as an absl::Time; nullopt: the time is malformed.
std::optional<absl::Time> time_of(const ASN1_TIME* time);

/// The certificate in PEM.
std::string pem_text(X509* certificate);

}  // namespace signalbox::actors
