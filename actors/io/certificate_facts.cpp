// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_facts.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "actors/io/peer_certificate.hpp"

namespace signalbox::actors {
namespace {

constexpr std::size_t kMost = 1000;

using Reader = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

std::string text_in(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

std::string text_of(const X509_NAME* name) {
  const Reader out(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE);
  return text_in(out.get());
}

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

std::chrono::system_clock::time_point time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  const absl::CivilSecond second(parts.tm_year + 1900,
                                 parts.tm_mon + 1,
                                 parts.tm_mday,
                                 parts.tm_hour,
                                 parts.tm_min,
                                 parts.tm_sec);
  return absl::ToChronoTime(absl::FromCivil(second, absl::UTCTimeZone()));
}

std::string pem_of(X509* certificate) {
  const Reader out(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_X509(out.get(), certificate);
  return text_in(out.get());
}

}  // namespace

std::vector<CertificateFacts> facts_in(absl::string_view pem) {
  std::vector<CertificateFacts> all;
  const Reader reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  while (all.size() < kMost) {
    const Certificate certificate(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr),
                                  X509_free);
    if (certificate == nullptr) break;
    lb::PeerNames names = names_in(pem_of(certificate.get()));
    all.push_back({text_of(X509_get_subject_name(certificate.get())),
                   serial_of(certificate.get()),
                   std::move(names.dns),
                   std::move(names.others),
                   time_of(X509_get0_notBefore(certificate.get())),
                   time_of(X509_get0_notAfter(certificate.get())),
                   text_of(X509_get_issuer_name(certificate.get()))});
  }
  ERR_clear_error();
  return all;
}

}  // namespace signalbox::actors
