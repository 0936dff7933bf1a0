// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_reason.hpp"

#include <string>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include <catch2/catch.hpp>
#include <openssl/x509_vfy.h>

namespace signalbox::actors {
namespace {

using Place = RefusedCertificate::Place;

const char kRoots[] = "ca_certificate_file /etc/ca.pem";

CertificateFacts facts(const std::string& subject, const std::string& issuer = "CN = ca") {
  CertificateFacts made;
  made.subject = subject;
  made.issuer = issuer;
  made.valid_from = absl::ToChronoTime(
      absl::FromCivil(absl::CivilSecond(2019, 1, 2, 3, 4, 5), absl::UTCTimeZone()));
  made.expires =
      absl::ToChronoTime(absl::FromCivil(absl::CivilSecond(2020, 2, 1), absl::UTCTimeZone()));
  return made;
}

CertificateFacts spiffe() {
  CertificateFacts made = facts("");
  made.other = {"spiffe://mesh/orders"};
  return made;
}

}  // namespace

TEST_CASE("certificate_reason: the text says which certificate is at fault, and why",
          "[actors][io][tls][A29][A65]") {
  struct Row {
    const char* when;
    int error;
    Place place;
    CertificateFacts certificate;
    std::string reason;
  };

  const auto row = GENERATE(values<Row>({
      {"expired",
       X509_V_ERR_CERT_HAS_EXPIRED,
       Place::kServer,
       facts("CN = a"),
       "the server's certificate \"CN = a\" expired on 2020-02-01 00:00:00 UTC"},
      {"expired, without a subject",
       X509_V_ERR_CERT_HAS_EXPIRED,
       Place::kServer,
       spiffe(),
       "the server's certificate \"spiffe://mesh/orders\" expired on 2020-02-01 00:00:00 UTC"},
      {"expired, without a name",
       X509_V_ERR_CERT_HAS_EXPIRED,
       Place::kServer,
       facts(""),
       "the server's certificate expired on 2020-02-01 00:00:00 UTC"},
      {"an expired intermediate",
       X509_V_ERR_CERT_HAS_EXPIRED,
       Place::kChain,
       facts("CN = mid"),
       "the certificate \"CN = mid\" of the server's chain expired on 2020-02-01 00:00:00 UTC"},
      {"an expired root",
       X509_V_ERR_CERT_HAS_EXPIRED,
       Place::kRoots,
       facts("CN = ca"),
       "the certificate \"CN = ca\" of ca_certificate_file /etc/ca.pem expired on 2020-02-01 "
       "00:00:00 UTC"},
      {"not valid yet",
       X509_V_ERR_CERT_NOT_YET_VALID,
       Place::kServer,
       facts("CN = a"),
       "the server's certificate \"CN = a\" is not valid before 2019-01-02 03:04:05 UTC"},
      {"another authority",
       X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
       Place::kServer,
       facts("CN = a"),
       "the server's certificate \"CN = a\" (issuer \"CN = ca\") is not signed by any certificate "
       "of ca_certificate_file /etc/ca.pem"},
      {"another authority of an intermediate",
       X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
       Place::kChain,
       facts("CN = mid"),
       "the certificate \"CN = mid\" of the server's chain (issuer \"CN = ca\") is not signed by "
       "any certificate of ca_certificate_file /etc/ca.pem"},
      {"no issuer",
       X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
       Place::kServer,
       facts("CN = a", ""),
       "the server's certificate \"CN = a\" is not signed by any certificate of "
       "ca_certificate_file /etc/ca.pem"},
      {"an authority of the same name",
       X509_V_ERR_CERT_SIGNATURE_FAILURE,
       Place::kServer,
       facts("CN = a"),
       "the server's certificate \"CN = a\" (issuer \"CN = ca\") is signed with another key than "
       "its issuer's certificate has; see ca_certificate_file /etc/ca.pem"},
      {"self-signed",
       X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
       Place::kServer,
       facts("CN = a", "CN = a"),
       "the server's certificate \"CN = a\" is self-signed, and is not in ca_certificate_file "
       "/etc/ca.pem"},
      {"a self-signed root in the chain",
       X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
       Place::kChain,
       facts("CN = other", "CN = other"),
       "the certificate \"CN = other\" of the server's chain is self-signed, and is not in "
       "ca_certificate_file /etc/ca.pem"},
      {"for clients",
       X509_V_ERR_INVALID_PURPOSE,
       Place::kServer,
       facts("CN = a"),
       "the server's certificate \"CN = a\" is not for TLS servers, as its extended key usage "
       "says"},
      {"an issuer that is no authority",
       X509_V_ERR_INVALID_CA,
       Place::kRoots,
       facts("CN = b"),
       "the certificate \"CN = b\" of ca_certificate_file /etc/ca.pem is not for signing "
       "certificates, as its basic constraints or key usage say"},
      {"another error",
       X509_V_ERR_EE_KEY_TOO_SMALL,
       Place::kServer,
       facts("CN = a"),
       "the server's certificate \"CN = a\" does not verify; OpenSSL says: EE certificate key too "
       "weak"},
      {"control characters",
       X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
       Place::kServer,
       facts("CN = a\n\x1b[31m\"", "CN = \x7f\xc3\xa4"),
       "the server's certificate \"CN = a\\n\\x1b[31m\\\"\" (issuer \"CN = \\x7f\\xc3\\xa4\") is "
       "not signed by any certificate of ca_certificate_file /etc/ca.pem"},
      {"a long name",
       X509_V_ERR_CERT_HAS_EXPIRED,
       Place::kServer,
       facts(std::string(1000, 'x')),
       "the server's certificate \"" + std::string(128, 'x') +
           "...\" expired on 2020-02-01 00:00:00 UTC"},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(reason_of({row.error, row.place, row.certificate}, kRoots) == row.reason);
  }
}

}  // namespace signalbox::actors
