// SPDX-License-Identifier: Apache-2.0
//
// certificate_facts — what operators ask about a certificate: its subject, and how long it is
// valid.
//
//   PEM of a file ─▶ [facts_in] ─▶ one CertificateFacts for each certificate ─▶ GET /certs

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace signalbox::actors {

struct CertificateFacts {
  std::string subject;             ///< "CN = orders, O = Shop".
  std::string serial;              ///< In hexadecimal, lower case.
  std::vector<std::string> dns;    ///< Subject alternative names: DNS.
  std::vector<std::string> other;  ///< The others: URIs, addresses, e-mail addresses.
  std::chrono::system_clock::time_point valid_from;
  std::chrono::system_clock::time_point expires;
};

/// The certificates of a PEM text, in the text's order. The first malformed certificate and all
/// after it are left out, and so are those after the first 1,000.
std::vector<CertificateFacts> facts_in(absl::string_view pem);

}  // namespace signalbox::actors
