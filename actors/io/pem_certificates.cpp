// SPDX-License-Identifier: Apache-2.0
#include "actors/io/pem_certificates.hpp"

#include <ctime>
#include <utility>

#include "absl/time/civil_time.h"
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace signalbox::actors {
namespace {

using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

Memory empty_memory() {
  return {BIO_new(BIO_s_mem()), BIO_free};
}

std::string text_in(const Memory& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

}  // namespace

PemCertificates read_certificates(absl::string_view pem, std::size_t most) {
  ERR_clear_error();
  const Memory reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  PemCertificates read;
  while (read.certificates.size() < most) {
    CertificatePtr next(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) {
      read.is_whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
      break;
    }
    read.certificates.push_back(std::move(next));
  }
  ERR_clear_error();
  return read;
}

std::string name_text(const X509_NAME* name) {
  const Memory out = empty_memory();
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE);
  ERR_clear_error();
  return text_in(out);
}

std::optional<absl::Time> time_of(const ASN1_TIME* time) {
  std::tm parts{};
  const bool is_time = ASN1_TIME_to_tm(time, &parts) == 1;
  ERR_clear_error();
  if (!is_time) return std::nullopt;
  const absl::CivilSecond second(parts.tm_year + 1900,
                                 parts.tm_mon + 1,
                                 parts.tm_mday,
                                 parts.tm_hour,
                                 parts.tm_min,
                                 parts.tm_sec);
  return absl::FromCivil(second, absl::UTCTimeZone());
}

std::string pem_text(X509* certificate) {
  const Memory out = empty_memory();
  PEM_write_bio_X509(out.get(), certificate);
  ERR_clear_error();
  return text_in(out);
}

}  // namespace signalbox::actors
