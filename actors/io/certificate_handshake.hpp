// SPDX-License-Identifier: Apache-2.0
//
// CertificateHandshake — the beginning of a TLS handshake, which ends at the server's certificate.
//
//   server's bytes ─▶ [exchange] ─▶ bytes for the server
//                         └▶ is_over(), refused(): OpenSSL's verdict on the certificate
//
// gRPC 1.51 drops the reason for which OpenSSL refuses a certificate. A handshake of signalbox's
// own finds the reason out. The class uses no socket.
//
// Invariants
//   H1  The handshake fails at the server's certificate, whether or not the certificate verifies.
//       So a mistake here cannot make a connection that carries data. TLS sends the client's
//       certificate later, so the handshake needs neither that certificate nor its key.
//   H2  Certificates are verified by OpenSSL alone, with the roots and the flags that gRPC uses.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <openssl/ssl.h>

#include "actors/io/certificate_reason.hpp"

namespace signalbox::actors {

class CertificateHandshake {
 public:
  /// `roots`: the PEM text of the roots; empty: the system's roots. `server_name`: the name that
  /// the handshake sends (SNI). Null: OpenSSL cannot use them, or which roots gRPC takes for the
  /// system's is not known.
  static std::unique_ptr<CertificateHandshake> make(const std::string& roots,
                                                    const std::string& server_name);

  /// Takes bytes of the server; none to begin. Returns the bytes to send to the server.
  std::string exchange(absl::string_view received);

  bool is_over() const { return is_over_; }

  /// nullopt: the certificate verified, or the handshake has not come to it.
  const std::optional<RefusedCertificate>& refused() const { return refused_; }

 private:
  struct Release {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  CertificateHandshake() = default;
  static int verify(X509_STORE_CTX* store, void* handshake);
  bool begin(const std::string& roots, const std::string& server_name);

  std::unique_ptr<SSL_CTX, Release> context_;
  std::unique_ptr<SSL, Release> ssl_;
  BIO* from_server_ = nullptr;  ///< ssl_ owns both.
  BIO* to_server_ = nullptr;
  bool is_over_ = false;
  std::optional<RefusedCertificate> refused_;
};

}  // namespace signalbox::actors
