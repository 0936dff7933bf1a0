// SPDX-License-Identifier: Apache-2.0
#include "actors/io/tls_files.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "actors/io/pem_certificates.hpp"

namespace signalbox::actors {
namespace {

struct Release {
  void operator()(BIO* bio) const { BIO_free(bio); }

  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

using BioPtr = std::unique_ptr<BIO, Release>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Release>;

absl::Status wrong(absl::string_view field, const std::string& path, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(field, " ", path, ": ", what));
}

absl::StatusOr<std::string> read_file_of_field(absl::string_view field, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!file.is_open() || std::filesystem::is_directory(path, ignored))
    return wrong(field, path, "the file cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The certificates of a PEM text. Empty when it has no certificate, or when one is malformed.
std::vector<CertificatePtr> certificates_in(const std::string& pem) {
  PemCertificates read = read_certificates(pem);
  return read.is_whole ? std::move(read.certificates) : std::vector<CertificatePtr>();
}

// The moment when the certificate becomes invalid; nullopt: it has no readable time.
std::optional<CertificateEnds::Time> end_of(const CertificatePtr& certificate) {
  const auto end = time_of(X509_get0_notAfter(certificate.get()));
  return end ? std::optional(absl::ToChronoTime(*end)) : std::nullopt;
}

// The earliest (`better` is std::less) or the latest (std::greater) time at which a certificate of
// `all` becomes invalid. nullopt: no certificate has a readable time.
template <typename Better>
std::optional<CertificateEnds::Time> end_of(const std::vector<CertificatePtr>& all, Better better) {
  std::optional<CertificateEnds::Time> chosen;
  for (const CertificatePtr& certificate : all) {
    const auto end = end_of(certificate);
    if (end && (!chosen || better(*end, *chosen))) chosen = end;
  }
  return chosen;
}

// The callback with which OpenSSL asks for the password of an encrypted key. Answers that there is
// none; without this callback OpenSSL would ask on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*rwflag*/, void* /*user*/) {
  return -1;
}

KeyPtr private_key(const std::string& pem) {
  const BioPtr reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return key;
}

absl::StatusOr<PemTexts> read_now(const xds::CertificateFiles& files) {
  constexpr const char* kNoCertificate = "expected certificates in PEM, found something else";
  PemTexts texts;
  if (!files.ca_certificate_file.empty()) {
    auto roots = read_file_of_field("ca_certificate_file", files.ca_certificate_file);
    if (!roots.ok()) return roots.status();
    const auto certificates = certificates_in(*roots);
    if (certificates.empty())
      return wrong("ca_certificate_file", files.ca_certificate_file, kNoCertificate);
    texts.ends.roots = end_of(certificates, std::greater());
    texts.roots = *std::move(roots);
  }
  if (files.certificate_file.empty()) return texts;

  auto chain = read_file_of_field("certificate_file", files.certificate_file);
  if (!chain.ok()) return chain.status();
  auto key_text = read_file_of_field("private_key_file", files.private_key_file);
  if (!key_text.ok()) return key_text.status();
  const auto certificates = certificates_in(*chain);
  if (certificates.empty())
    return wrong("certificate_file", files.certificate_file, kNoCertificate);
  const KeyPtr key = private_key(*key_text);
  if (key == nullptr) {
    return wrong("private_key_file",
                 files.private_key_file,
                 "expected a private key in PEM, without password, found something else");
  }
  const bool belongs = X509_check_private_key(certificates.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!belongs) {
    return wrong("private_key_file",
                 files.private_key_file,
                 absl::StrCat("expected the key of ", files.certificate_file, ", found another"));
  }
  texts.ends.identity = end_of(certificates, std::less());
  texts.certificate_chain = *std::move(chain);
  texts.private_key = *std::move(key_text);
  return texts;
}

}  // namespace

absl::StatusOr<PemTexts> TlsFiles::read() {
  const std::lock_guard lock(mutex_);
  const Instant now = std::chrono::steady_clock::now();
  if (!read_at_ || now - *read_at_ >= reuse_for_) {
    read_at_ = now;
    read_again();
  }
  if (!good_) return failure_;
  return *good_;
}

CertificateEnds TlsFiles::ends() {
  const auto texts = read();
  return texts.ok() ? texts->ends : CertificateEnds();
}

// Reads the files; keeps the last good texts if they are bad. Precondition: the mutex is held.
void TlsFiles::read_again() {
  auto texts = read_now(files_);
  failure_ = texts.status();
  if (texts.ok()) {
    complained_.clear();
    good_ = *std::move(texts);
  } else if (good_ && complained_ != failure_.message()) {
    complained_ = std::string(failure_.message());
    complain_(absl::StrCat(complained_, "; the last good certificates stay in use"));
  }
}

}  // namespace signalbox::actors
