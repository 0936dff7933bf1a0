// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_verdict.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <openssl/x509_vfy.h>

#include "tests/support/certificates.hpp"

namespace signalbox::actors {
namespace {

using test::Authority;
using test::kExpired;
using test::kNotYetValid;

const char kRoots[] = "ca_certificate_file /etc/ca.pem";

const std::string kUnsigned =
    " is not signed by any certificate of ca_certificate_file /etc/ca.pem";

}  // namespace

TEST_CASE("certificate_verdict: the text says which certificate is at fault, and why",
          "[actors][io][tls][A29][A65]") {
  struct Row {
    const char* when;
    std::string chain;
    std::string roots;
    std::string verdict;
  };

  const Authority ca("ca");
  const Authority other("other");
  const Authority renewed("ca");
  const Authority old("old", kExpired);
  const Authority middle("middle", ca);
  const Authority old_middle("middle", ca, kExpired);
  const std::string own = ca.issue("server").certificate;
  const auto row = GENERATE_COPY(values<Row>({
      {"good", own, ca.certificate(), ""},
      {"good, by an intermediate",
       middle.issue("server").certificate + middle.certificate(),
       ca.certificate(),
       ""},
      {"good, the intermediate is trusted",
       middle.issue("server").certificate,
       middle.certificate(),
       ""},
      {"good, by the second root", own, other.certificate() + ca.certificate(), ""},
      {"expired",
       ca.issue("server", "", kExpired).certificate,
       ca.certificate(),
       "the server's certificate expired 2020-02-01 00:00:00 UTC"},
      {"not yet valid",
       ca.issue("server", "", kNotYetValid).certificate,
       ca.certificate(),
       "the server's certificate is not valid before 2090-01-02 03:04:05 UTC"},
      {"another authority",
       own,
       other.certificate(),
       "the server's certificate (issuer \"CN = ca\")" + kUnsigned},
      {"another authority, and expired",
       ca.issue("server", "", kExpired).certificate,
       other.certificate(),
       "the server's certificate (issuer \"CN = ca\")" + kUnsigned},
      {"another authority of the same name",
       own,
       renewed.certificate(),
       "the server's certificate" + kUnsigned +
           ": the certificate \"CN = ca\" there has another key"},
      {"self-signed",
       ca.certificate(),
       other.certificate(),
       "the server's certificate is self-signed, and not signed by any certificate of "
       "ca_certificate_file /etc/ca.pem"},
      {"self-signed, in the chain",
       own + ca.certificate(),
       other.certificate(),
       "certificate \"CN = ca\" of the server's chain is self-signed, and not signed by any "
       "certificate of ca_certificate_file /etc/ca.pem"},
      {"the intermediate was not sent",
       middle.issue("server").certificate,
       ca.certificate(),
       "the server's certificate (issuer \"CN = middle\")" + kUnsigned},
      {"the intermediate has another authority",
       middle.issue("server").certificate + middle.certificate(),
       other.certificate(),
       "certificate \"CN = middle\" of the server's chain (issuer \"CN = ca\")" + kUnsigned},
      {"the intermediate has expired",
       old_middle.issue("server").certificate + old_middle.certificate(),
       ca.certificate(),
       "certificate \"CN = middle\" of the server's chain expired 2020-02-01 00:00:00 UTC"},
      {"the root has expired",
       old.issue("server").certificate,
       old.certificate(),
       "certificate \"CN = old\" of ca_certificate_file /etc/ca.pem expired 2020-02-01 00:00:00 "
       "UTC"},
      {"good, it is trusted itself", own, own, ""},
      {"not for servers",
       middle.certificate(),
       ca.certificate(),
       std::string("the server's certificate does not verify: ") +
           X509_verify_cert_error_string(X509_V_ERR_INVALID_PURPOSE)},
      {"an issuer with control characters",
       Authority("a\n\x1b\"b").issue("server").certificate,
       ca.certificate(),
       "the server's certificate (issuer \"CN = a\\0A\\1B\\\"b\")" + kUnsigned},
      {"garbage", "garbage", ca.certificate(), ""},
      {"no chain", "", ca.certificate(), ""},
      {"garbage after the server's certificate", own + "garbage", ca.certificate(), ""},
      {"roots without PEM", own, "garbage", ""},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(certificate_verdict(row.chain, row.roots, kRoots) == row.verdict);
  }
}

TEST_CASE("certificate_verdict: long names are cut", "[actors][io][tls][A29][A65]") {
  // A common name has at most 64 characters. Each of these takes six bytes when it is escaped.
  std::string name;
  for (int i = 0; i < 64; ++i)
    name += "ä";
  const std::string verdict = certificate_verdict(
      Authority(name).issue("server").certificate, Authority("ca").certificate(), kRoots);
  CHECK_THAT(verdict, Catch::Contains("\\C3...\") is not signed"));
  CHECK(verdict.size() < 300);
}

TEST_CASE("certificate_verdict: without roots of its own it uses the system's",
          "[actors][io][tls][A65]") {
  CHECK(
      certificate_verdict(Authority("ca").issue("server").certificate, "", "the system's roots") ==
      "the server's certificate (issuer \"CN = ca\") is not signed by any certificate of the "
      "system's roots");
}

}  // namespace signalbox::actors
