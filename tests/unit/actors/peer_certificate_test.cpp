// SPDX-License-Identifier: Apache-2.0
#include "actors/io/peer_certificate.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/certificates.hpp"

namespace signalbox::actors::peer_certificate_test {
namespace {

using Names = std::vector<std::string>;

const test::Authority& authority() {
  static const test::Authority made("ca");
  return made;
}

}  // namespace

TEST_CASE("peer certificate: has names of each kind", "[actors][io][tls][A29]") {
  const std::string pem = authority()
                              .issue("common",
                                     "DNS:a.example,URI:spiffe://orders/ns/prod,IP:10.0.0.1,"
                                     "email:a@b.example,DNS:*.example,IP:2001:db8::1,"
                                     "otherName:1.2.3.4;UTF8:x")
                              .certificate;
  const lb::PeerNames names = names_in(pem);
  CHECK(names.dns == Names{"a.example", "*.example"});
  CHECK(names.others == Names{"spiffe://orders/ns/prod", "10.0.0.1", "a@b.example", "2001:db8::1"});
}

TEST_CASE("peer certificate: the first of a chain, and never its common name",
          "[actors][io][tls][A29]") {
  const std::string chain = authority().issue("one", "DNS:one.example").certificate +
                            authority().issue("two", "DNS:two.example").certificate;
  CHECK(names_in(chain).dns == Names{"one.example"});
  const lb::PeerNames none = names_in(authority().issue("one.example", "").certificate);
  CHECK(none.dns.empty());
  CHECK(none.others.empty());
}

TEST_CASE("peer certificate: a name with a NUL in it is none", "[actors][io][tls][A29]") {
  // GeneralNames of two IA5Strings: "good.example\0.evil" and "b.example".
  const std::string der =
      "30:1F:82:12:67:6F:6F:64:2E:65:78:61:6D:70:6C:65:00:2E:65:76:69:6C:"
      "82:09:62:2E:65:78:61:6D:70:6C:65";
  CHECK(names_in(authority().issue("forged", "DER:" + der).certificate).dns == Names{"b.example"});
}

TEST_CASE("peer certificate: an address of neither length is none", "[actors][io][tls][A29]") {
  // GeneralNames of three addresses, of 3, 5 and 4 bytes.
  const std::string der = "30:12:87:03:0A:00:00:87:05:0A:00:00:01:02:87:04:0A:00:00:01";
  CHECK(names_in(authority().issue("odd", "DER:" + der).certificate).others == Names{"10.0.0.1"});
}

TEST_CASE("peer certificate: what cannot be read has no names", "[actors][io][tls][A29]") {
  for (const std::string& pem : Names{"", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n"}) {
    CHECK(names_in(pem).dns.empty());
    CHECK(names_in(pem).others.empty());
  }
}

}  // namespace signalbox::actors::peer_certificate_test
