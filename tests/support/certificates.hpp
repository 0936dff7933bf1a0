// SPDX-License-Identifier: Apache-2.0
//
// Certificates for tests, made anew in memory: an authority, and what it signs.
//
//   Authority ca("one"); ca.issue("client") ─▶ {certificate, key} in PEM; ca.certificate() ─▶ PEM
//
// What is issued holds for 127.0.0.1 and localhost, or the names that are asked for, as server and
// as client, for one day.

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

class Authority {
 public:
  explicit Authority(const std::string& name);

  const std::string& certificate() const { return pem_; }

  /// `names`: its subject alternative names, as OpenSSL writes them; empty: it has none.
  Issued issue(const std::string& name,
               const std::string& names = "IP:127.0.0.1,DNS:localhost") const;

 private:
  std::string name_;
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> own_;
  std::string pem_;
};

}  // namespace signalbox::test
