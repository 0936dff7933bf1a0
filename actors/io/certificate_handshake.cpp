// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_handshake.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

namespace signalbox::actors {
namespace {

using Place = RefusedCertificate::Place;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

// The first file in which gRPC looks for the system's roots. Debian's ca-certificates has it.
constexpr char kSystemRoots[] = "/etc/ssl/certs/ca-certificates.crt";

// Adds the system's roots. False: gRPC may have other roots, because one of its environment
// variables is set, or because its first file is missing.
bool add_system_roots(SSL_CTX& context) {
  static constexpr std::array kVariables{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                                         "GRPC_NOT_USE_SYSTEM_SSL_ROOTS",
                                         "GRPC_SYSTEM_SSL_ROOTS_DIR"};
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  return std::ranges::none_of(kVariables, is_set) &&
         SSL_CTX_load_verify_file(&context, kSystemRoots) == 1;
}

// Fills the store with the roots, as gRPC does. False: there are none.
bool add_roots(const std::string& pem, SSL_CTX& context) {
  if (pem.empty()) return add_system_roots(context);
  X509_STORE* const store = SSL_CTX_get_cert_store(&context);
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  const Memory reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  bool has_any = false;
  while (true) {
    const std::unique_ptr<X509, decltype(&X509_free)> root(
        PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr), X509_free);
    if (root == nullptr) return has_any;
    has_any = X509_STORE_add_cert(store, root.get()) == 1 || has_any;
  }
}

std::string pem_of(X509* certificate) {
  const Memory out(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_X509(out.get(), certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

// What OpenSSL says after it has refused a certificate. nullopt: it names no certificate.
std::optional<RefusedCertificate> refused_in(X509_STORE_CTX& store) {
  RefusedCertificate refused;
  refused.error = X509_STORE_CTX_get_error(&store);
  X509* const certificate = X509_STORE_CTX_get_current_cert(&store);
  if (refused.error == X509_V_OK || certificate == nullptr) return std::nullopt;
  const int depth = X509_STORE_CTX_get_error_depth(&store);
  if (depth > 0) {
    refused.place =
        depth < X509_STORE_CTX_get_num_untrusted(&store) ? Place::kChain : Place::kRoots;
  }
  std::vector<CertificateFacts> facts = facts_in(pem_of(certificate));
  if (facts.empty()) return std::nullopt;
  refused.certificate = std::move(facts.front());
  return refused;
}

}  // namespace

std::unique_ptr<CertificateHandshake> CertificateHandshake::make(const std::string& roots,
                                                                 const std::string& server_name) {
  std::unique_ptr<CertificateHandshake> made(new CertificateHandshake);
  const bool has_begun = made->begin(roots, server_name);
  ERR_clear_error();
  return has_begun ? std::move(made) : nullptr;
}

bool CertificateHandshake::begin(const std::string& roots, const std::string& server_name) {
  context_.reset(SSL_CTX_new(TLS_client_method()));
  if (context_ == nullptr || !add_roots(roots, *context_)) return false;
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context_.get(), &CertificateHandshake::verify, this);
  ssl_.reset(SSL_new(context_.get()));
  if (ssl_ == nullptr) return false;
  from_server_ = BIO_new(BIO_s_mem());
  to_server_ = BIO_new(BIO_s_mem());
  if (from_server_ == nullptr || to_server_ == nullptr) {
    BIO_free(from_server_);
    BIO_free(to_server_);
    return false;
  }
  SSL_set_bio(ssl_.get(), from_server_, to_server_);
  SSL_set_connect_state(ssl_.get());
  static constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};
  const bool has_protocol = SSL_set_alpn_protos(ssl_.get(), kHttp2.data(), kHttp2.size()) == 0;
  return has_protocol &&
         (server_name.empty() || SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str()) == 1);
}

// OpenSSL calls this with the server's certificate. The result 0 ends the handshake (H1).
int CertificateHandshake::verify(X509_STORE_CTX* store, void* handshake) {
  if (X509_verify_cert(store) != 1)
    static_cast<CertificateHandshake*>(handshake)->refused_ = refused_in(*store);
  return 0;
}

std::string CertificateHandshake::exchange(absl::string_view received) {
  if (!received.empty())
    BIO_write(from_server_, received.data(), static_cast<int>(received.size()));
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  is_over_ = SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ;
  ERR_clear_error();
  std::string bytes(BIO_ctrl_pending(to_server_), '\0');
  if (!bytes.empty()) BIO_read(to_server_, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace signalbox::actors
