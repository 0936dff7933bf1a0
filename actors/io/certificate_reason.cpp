// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_reason.hpp"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <openssl/x509_vfy.h>

namespace signalbox::actors {
namespace {

using Place = RefusedCertificate::Place;

constexpr std::size_t kLongestName = 128;

std::string in_quotes(absl::string_view name) {
  const bool is_long = name.size() > kLongestName;
  return absl::StrCat(
      "\"", absl::CHexEscape(name.substr(0, kLongestName)), is_long ? "...\"" : "\"");
}

// A space and the certificate's name in quotes. A certificate without a subject, as those of SPIFFE
// are, is named by its first alternative name. Empty: it has no name.
std::string name_of(const CertificateFacts& certificate) {
  if (!certificate.subject.empty()) return absl::StrCat(" ", in_quotes(certificate.subject));
  for (const auto* names : {&certificate.dns, &certificate.other}) {
    if (!names->empty()) return absl::StrCat(" ", in_quotes(names->front()));
  }
  return "";
}

std::string subject_of(const RefusedCertificate& refused, absl::string_view roots) {
  const std::string name = name_of(refused.certificate);
  switch (refused.place) {
    case Place::kServer:
      return absl::StrCat("the server's certificate", name);
    case Place::kChain:
      return absl::StrCat("the certificate", name, " of the server's chain");
    case Place::kRoots:
      break;
  }
  return absl::StrCat("the certificate", name, " of ", roots);
}

std::string day_of(std::chrono::system_clock::time_point time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromChrono(time), absl::UTCTimeZone());
}

std::string fault_of(const RefusedCertificate& refused, absl::string_view roots) {
  const CertificateFacts& certificate = refused.certificate;
  const std::string issuer = certificate.issuer.empty()
                                 ? ""
                                 : absl::StrCat(" (issuer ", in_quotes(certificate.issuer), ")");
  switch (refused.error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat(" expired on ", day_of(certificate.expires));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat(" is not valid before ", day_of(certificate.valid_from));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return absl::StrCat(issuer, " is not signed by any certificate of ", roots);
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::StrCat(
          issuer, " is signed with another key than its issuer's certificate has; see ", roots);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return absl::StrCat(" is self-signed, and is not in ", roots);
    case X509_V_ERR_INVALID_PURPOSE:
      return " is not for TLS servers, as its extended key usage says";
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
      return " is not for signing certificates, as its basic constraints or key usage say";
    default:
      return absl::StrCat(" does not verify; OpenSSL says: ",
                          X509_verify_cert_error_string(refused.error));
  }
}

}  // namespace

std::string reason_of(const RefusedCertificate& refused, absl::string_view roots) {
  return absl::StrCat(subject_of(refused, roots), fault_of(refused, roots));
}

}  // namespace signalbox::actors
