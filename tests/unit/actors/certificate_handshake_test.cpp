// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_handshake.hpp"

#include <memory>
#include <string>

#include <catch2/catch.hpp>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "tests/support/certificates.hpp"

namespace signalbox::actors {
namespace {

using Place = RefusedCertificate::Place;
using test::Authority;
using test::Issued;
using test::Validity;

// The server's end of a handshake, without a socket.
class Server {
 public:
  // `chain`: the certificate that follows the server's own; empty: none.
  explicit Server(const Issued& issued, const std::string& chain = "", int most = TLS1_3_VERSION) {
    SSL_CTX_set_max_proto_version(context_.get(), most);
    const auto certificate = certificate_of(issued.certificate);
    REQUIRE(SSL_CTX_use_certificate(context_.get(), certificate.get()) == 1);
    const std::unique_ptr<BIO, decltype(&BIO_free)> key_text(
        BIO_new_mem_buf(issued.key.data(), static_cast<int>(issued.key.size())), BIO_free);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
    REQUIRE(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1);
    if (!chain.empty())
      REQUIRE(SSL_CTX_add1_chain_cert(context_.get(), certificate_of(chain).get()) == 1);
    ssl_.reset(SSL_new(context_.get()), SSL_free);
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_accept_state(ssl_.get());
  }

  std::string exchange(const std::string& received) {
    if (!received.empty()) BIO_write(in_, received.data(), static_cast<int>(received.size()));
    is_connected_ = SSL_do_handshake(ssl_.get()) == 1 || is_connected_;
    ERR_clear_error();
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

  bool is_connected() const { return is_connected_; }

  std::string name() const {
    const char* const name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
    return name == nullptr ? "" : name;
  }

 private:
  static std::shared_ptr<X509> certificate_of(const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> reader(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
    return {PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr), X509_free};
  }

  const std::shared_ptr<SSL_CTX> context_{SSL_CTX_new(TLS_server_method()), SSL_CTX_free};
  BIO* const in_ = BIO_new(BIO_s_mem());
  BIO* const out_ = BIO_new(BIO_s_mem());
  std::shared_ptr<SSL> ssl_;
  bool is_connected_ = false;
};

// Carries bytes between both until the handshake is over.
void shake_hands(CertificateHandshake& client, Server& server) {
  std::string bytes = client.exchange("");
  for (int i = 0; i < 10 && !client.is_over(); ++i)
    bytes = client.exchange(server.exchange(bytes));
  server.exchange(bytes);
}

std::unique_ptr<CertificateHandshake> handshake(const std::string& roots) {
  auto made = CertificateHandshake::make(roots, "orders.example");
  REQUIRE(made != nullptr);
  return made;
}

}  // namespace

TEST_CASE("certificate_handshake: OpenSSL's verdict names the certificate at fault",
          "[actors][io][tls][A29][A65]") {
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  CAPTURE(version);
  const Authority ca("ca");
  const Authority other("other");
  const auto refused = [&](const std::string& roots, Server server) {
    const auto client = handshake(roots);
    shake_hands(*client, server);
    CHECK(client->is_over());
    CHECK_FALSE(server.is_connected());
    CHECK(server.name() == "orders.example");
    REQUIRE(client->refused().has_value());
    return *client->refused();
  };
  SECTION("expired") {
    const auto found =
        refused(ca.certificate(), Server(ca.issue("a", "DNS:a", Validity::kExpired), "", version));
    CHECK(found.error == X509_V_ERR_CERT_HAS_EXPIRED);
    CHECK(found.place == Place::kServer);
    CHECK(found.certificate.subject == "CN = a");
    CHECK(found.certificate.expires < std::chrono::system_clock::now());
  }
  SECTION("not valid yet") {
    const auto found =
        refused(ca.certificate(), Server(ca.issue("a", "DNS:a", Validity::kNotYet), "", version));
    CHECK(found.error == X509_V_ERR_CERT_NOT_YET_VALID);
    CHECK(found.certificate.valid_from > std::chrono::system_clock::now());
  }
  SECTION("another authority") {
    const auto found = refused(other.certificate(), Server(ca.issue("a"), "", version));
    CHECK(found.error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
    CHECK(found.place == Place::kServer);
    CHECK(found.certificate.issuer == "CN = ca");
  }
  SECTION("the system's roots") {
    const auto found = refused("", Server(ca.issue("a"), "", version));
    CHECK(found.error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
  }
  SECTION("another authority with the same name") {
    const Authority again("ca");
    const auto found = refused(again.certificate(), Server(ca.issue("a"), "", version));
    CHECK(found.error == X509_V_ERR_CERT_SIGNATURE_FAILURE);
    CHECK(found.place == Place::kServer);
  }
  SECTION("an intermediate of another authority") {
    const Authority middle("middle", ca);
    const auto found =
        refused(other.certificate(), Server(middle.issue("a"), middle.certificate(), version));
    CHECK(found.error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
    CHECK(found.place == Place::kChain);
    CHECK(found.certificate.subject == "CN = middle");
  }
  SECTION("a root of another authority in the chain") {
    const auto found =
        refused(other.certificate(), Server(ca.issue("a"), ca.certificate(), version));
    CHECK(found.error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
    CHECK(found.place == Place::kChain);
  }
  SECTION("an expired root") {
    const Authority old("old", Validity::kExpired);
    const auto found = refused(old.certificate(), Server(old.issue("a"), "", version));
    CHECK(found.error == X509_V_ERR_CERT_HAS_EXPIRED);
    CHECK(found.place == Place::kRoots);
    CHECK(found.certificate.subject == "CN = old");
  }
}

TEST_CASE("certificate_handshake: ends at a good certificate, too", "[actors][io][tls][A29][A65]") {
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  CAPTURE(version);
  const Authority ca("ca");
  const Authority middle("middle", ca);
  SECTION("of the root") {
    Server server(ca.issue("a"), "", version);
    const auto client = handshake(ca.certificate());
    shake_hands(*client, server);
    CHECK(client->is_over());
    CHECK_FALSE(client->refused().has_value());
    CHECK_FALSE(server.is_connected());
  }
  SECTION("of an intermediate that is trusted, as gRPC allows") {
    Server server(middle.issue("a"), "", version);
    const auto client = handshake(middle.certificate());
    shake_hands(*client, server);
    CHECK(client->is_over());
    CHECK_FALSE(client->refused().has_value());
    CHECK_FALSE(server.is_connected());
  }
}

TEST_CASE("certificate_handshake: what is no TLS ends it without a verdict", "[actors][io][tls]") {
  const Authority ca("ca");
  const auto client = handshake(ca.certificate());
  CHECK_FALSE(client->exchange("").empty());
  CHECK_FALSE(client->is_over());
  client->exchange("HTTP/1.1 400 Bad Request\r\n\r\n");
  CHECK(client->is_over());
  CHECK_FALSE(client->refused().has_value());
  CHECK(CertificateHandshake::make("no certificates", "orders.example") == nullptr);
}

}  // namespace signalbox::actors
