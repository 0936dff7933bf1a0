// SPDX-License-Identifier: Apache-2.0
#include "actors/io/connection_security.hpp"

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

const xds::ChannelCredentials kPlaintext = xds::InsecureCredentials{};

xds::ChannelCredentials tls(const std::string& ca, const std::string& certificate = "") {
  xds::TlsCredentials made;
  made.files.ca_certificate_file = ca;
  made.files.certificate_file = certificate;
  return made;
}

// Error texts of gRPC 1.51.
const char kReset[] = "recvmsg:Connection reset by peer";
const char kUntrusted[] =
    "Tls handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed";
const char kNoTls[] =
    "Tls handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number";
const char kAlert[] =
    "Tls handshake failed: SSL_ERROR_SSL: error:0A000410:SSL routines::sslv3 alert handshake "
    "failure";

}  // namespace

TEST_CASE("connection_security: a question follows what gRPC leaves open",
          "[actors][io][tls][A29][A65]") {
  struct Row {
    const char* when;
    ConnectionSecurity security;
    const char* reason;
    std::string question;
  };

  UpstreamTls cluster;
  cluster.roots = CertificateProvider{.instance_name = "files"};
  const std::string wants_tls = "; the connection is plaintext: does the server want TLS?";
  const std::string wants_certificate = "; does the server want a client certificate?";
  const std::string trusts = "; does the server trust the client's certificate?";
  const auto is_signed = [](const std::string& roots) {
    return "; is the server's certificate signed by a certificate of " + roots +
           ", and is today between the dates of both?";
  };
  const auto row = GENERATE_COPY(values<Row>({
      {"plaintext, closed", security_of(kPlaintext), "Socket closed", wants_tls},
      {"plaintext, reset", security_of(kPlaintext), kReset, wants_tls},
      {"plaintext, another protocol",
       security_of(kPlaintext),
       "Failed parsing HTTP/2",
       "; the connection is plaintext HTTP/2: does the server want TLS, or another protocol?"},
      {"plaintext, refused", security_of(kPlaintext), "Connection refused", ""},
      {"TLS, refused", security_of(tls("ca")), "Connection refused", ""},
      {"TLS, plaintext server",
       security_of(tls("ca")),
       kNoTls,
       "; the server's answer is not TLS: is the server plaintext?"},
      {"TLS, closed", security_of(tls("ca")), "Socket closed", wants_certificate},
      {"TLS, alert", security_of(tls("ca")), kAlert, wants_certificate},
      {"TLS with identity, closed", security_of(tls("ca", "c")), "Socket closed", trusts},
      {"TLS with identity, alert", security_of(tls("ca", "c")), kAlert, trusts},
      {"TLS, untrusted",
       security_of(tls("/etc/ca.pem")),
       kUntrusted,
       is_signed("ca_certificate_file /etc/ca.pem")},
      {"TLS, untrusted by the system",
       security_of(tls("")),
       kUntrusted,
       is_signed("the system's roots")},
      {"TLS of a cluster, untrusted",
       security_of(cluster),
       kUntrusted,
       is_signed("the ca_certificate_file of certificate provider instance \"files\"")},
      {"TLS of a cluster, closed", security_of(cluster), "Socket closed", wants_certificate},
      {"credentials of the program", {}, "Socket closed", ""},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(with_question(row.reason, row.security) == row.reason + row.question);
  }
}

TEST_CASE("connection_security: a verdict on the certificate takes the question's place",
          "[actors][io][tls][A29][A65]") {
  CHECK(is_certificate_refused(kUntrusted));
  CHECK_FALSE(is_certificate_refused(kAlert));
  CHECK_FALSE(is_certificate_refused(kNoTls));
  CHECK(with_question(kUntrusted, security_of(tls("ca")), "the server's certificate expired") ==
        std::string(kUntrusted) + ": the server's certificate expired");
}

}  // namespace signalbox::actors
