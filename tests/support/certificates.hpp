// SPDX-License-Identifier: Apache-2.0
//
// Certificates for tests, made anew in memory: an authority, and the certificates that it signs.
//
//   Authority ca("one"); ca.issue("client") ─▶ {certificate, key} in PEM; ca.certificate() ─▶ PEM
//
// A server or a client may use an issued certificate. It is valid from yesterday to tomorrow,
// unless the test asks for other dates. It names 127.0.0.1 and localhost, or the names that the
// test asks for.

#pragma once

#include <memory>
#include <string>

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace signalbox::test {

struct Issued {
  std::string certificate;
  std::string key;
};

/// The dates of a certificate, such as "20200201000000Z". Null: yesterday, tomorrow.
struct Dates {
  const char* from = nullptr;
  const char* until = nullptr;
};

inline constexpr Dates kExpired{.from = "20190101000000Z", .until = "20200201000000Z"};
inline constexpr Dates kNotYetValid{.from = "20900102030405Z", .until = "20910101000000Z"};

class Authority {
 public:
  /// An authority with a certificate that it has signed itself.
  explicit Authority(const std::string& name, const Dates& dates = {});

  /// An authority with a certificate of `signer`.
  Authority(const std::string& name, const Authority& signer, const Dates& dates = {});

  const std::string& certificate() const { return pem_; }

  /// `names`: the certificate's subject alternative names, in OpenSSL's syntax. Empty: it has none.
  Issued issue(const std::string& name,
               const std::string& names = "IP:127.0.0.1,DNS:localhost",
               const Dates& dates = {}) const;

 private:
  void sign_own(EVP_PKEY& signer);

  std::string name_;
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> own_;
  std::string pem_;
};

}  // namespace signalbox::test
