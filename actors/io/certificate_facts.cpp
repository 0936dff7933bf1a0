// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_facts.hpp"

#include <cstddef>
#include <utility>

#include "absl/time/time.h"
#include <openssl/x509.h>

#include "actors/io/peer_certificate.hpp"
#include "actors/io/pem_certificates.hpp"

namespace signalbox::actors {
namespace {

constexpr std::size_t kMost = 1000;

std::string serial_of(X509* certificate) {
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  const unsigned char* bytes = ASN1_STRING_get0_data(serial);
  for (int i = 0; i < ASN1_STRING_length(serial); ++i) {
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 0xfU];
  }
  return text;
}

std::chrono::system_clock::time_point moment_of(const ASN1_TIME* time) {
  return absl::ToChronoTime(time_of(time).value_or(absl::UnixEpoch()));
}

}  // namespace

std::vector<CertificateFacts> facts_in(absl::string_view pem) {
  std::vector<CertificateFacts> all;
  for (const CertificatePtr& certificate : read_certificates(pem, kMost).certificates) {
    lb::PeerNames names = names_in(pem_text(certificate.get()));
    all.push_back({name_text(X509_get_subject_name(certificate.get())),
                   serial_of(certificate.get()),
                   std::move(names.dns),
                   std::move(names.others),
                   moment_of(X509_get0_notBefore(certificate.get())),
                   moment_of(X509_get0_notAfter(certificate.get()))});
  }
  return all;
}

}  // namespace signalbox::actors
