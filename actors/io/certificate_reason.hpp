// SPDX-License-Identifier: Apache-2.0
//
// certificate_reason — why OpenSSL refuses a server's certificate, as an error text.
//
//   certificate_handshake ─▶ RefusedCertificate ─▶ [reason_of] ─▶ "the server's certificate
//                                                                  "CN = a" expired on …"
//
// The server chooses the names in its certificates. So the text has names of a bounded length, and
// escapes their characters.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "actors/io/certificate_facts.hpp"

namespace signalbox::actors {

/// What OpenSSL found when it verified a server's certificate.
struct RefusedCertificate {
  /// The place from which the certificate at fault comes.
  enum class Place {
    kServer,  ///< The server's own certificate.
    kChain,   ///< Another certificate that the server has sent.
    kRoots,   ///< A certificate of our roots.
  };

  int error = 0;  ///< OpenSSL's X509_V_ERR_…
  Place place = Place::kServer;
  CertificateFacts certificate = {};  ///< The certificate at fault.
};

/// Says which certificate is at fault and why. `roots` says where the root certificates are from,
/// as ConnectionSecurity::roots does.
std::string reason_of(const RefusedCertificate& refused, absl::string_view roots);

}  // namespace signalbox::actors
