// SPDX-License-Identifier: Apache-2.0
#include "tests/support/certificates.hpp"

#include <atomic>

#include <catch2/catch.hpp>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace signalbox::test {
namespace {

std::shared_ptr<EVP_PKEY> new_key() {
  std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  REQUIRE(key != nullptr);
  return key;
}

// Returns the bytes that `write` writes into a memory BIO of OpenSSL.
template <typename Write>
std::string pem_of(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  REQUIRE(write(memory.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string pem_of(X509& certificate) {
  return pem_of([&](BIO* to) { return PEM_write_bio_X509(to, &certificate); });
}

void extend(X509& certificate, int which, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, which, value);
  REQUIRE(extension != nullptr);
  REQUIRE(X509_add_ext(&certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// Makes a certificate that is not signed yet.
std::shared_ptr<X509> new_certificate(const std::string& subject,
                                      const std::string& issuer,
                                      EVP_PKEY& key,
                                      const Dates& dates) {
  static std::atomic<long> serial{1};
  std::shared_ptr<X509> certificate(X509_new(), X509_free);
  REQUIRE(certificate != nullptr);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  constexpr long kDay = 24L * 60 * 60;
  const auto set = [](ASN1_TIME* to, const char* date, long from_now) {
    if (date == nullptr) X509_gmtime_adj(to, from_now);
    if (date != nullptr) REQUIRE(ASN1_TIME_set_string_X509(to, date) == 1);
  };
  set(X509_getm_notBefore(certificate.get()), dates.from, -kDay);
  set(X509_getm_notAfter(certificate.get()), dates.until, kDay);
  X509_set_pubkey(certificate.get(), &key);
  const auto name = [](X509_NAME* to, const std::string& text) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.c_str());
    REQUIRE(X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_UTF8, bytes, -1, -1, 0) == 1);
  };
  name(X509_get_subject_name(certificate.get()), subject);
  name(X509_get_issuer_name(certificate.get()), issuer);
  return certificate;
}

}  // namespace

Authority::Authority(const std::string& name, const Dates& dates)
    : name_(name), key_(new_key()), own_(new_certificate(name, name, *key_, dates)) {
  sign_own(*key_);
}

Authority::Authority(const std::string& name, const Authority& signer, const Dates& dates)
    : name_(name), key_(new_key()), own_(new_certificate(name, signer.name_, *key_, dates)) {
  sign_own(*signer.key_);
}

void Authority::sign_own(EVP_PKEY& signer) {
  extend(*own_, NID_basic_constraints, "critical,CA:TRUE");
  extend(*own_, NID_key_usage, "critical,keyCertSign");
  REQUIRE(X509_sign(own_.get(), &signer, EVP_sha256()) > 0);
  pem_ = pem_of(*own_);
}

Issued Authority::issue(const std::string& name,
                        const std::string& names,
                        const Dates& dates) const {
  const auto key = new_key();
  const auto certificate = new_certificate(name, name_, *key, dates);
  if (!names.empty()) extend(*certificate, NID_subject_alt_name, names.c_str());
  REQUIRE(X509_sign(certificate.get(), key_.get(), EVP_sha256()) > 0);
  return {pem_of(*certificate), pem_of([&](BIO* to) {
            return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace signalbox::test
