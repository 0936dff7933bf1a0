// SPDX-License-Identifier: Apache-2.0
#include "actors/io/peer_certificate.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "actors/io/pem_certificates.hpp"

namespace signalbox::actors {
namespace {

std::string text_of(const ASN1_STRING* value) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
          static_cast<std::size_t>(ASN1_STRING_length(value))};
}

// The bytes of an IP address as text, such as "1.2.3.4" or "::1". Empty if their number fits
// neither IPv4 nor IPv6.
std::string address_text(const std::string& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_ipv6 = bytes.size() == sizeof(in6_addr);
  if (!is_ipv6 && bytes.size() != sizeof(in_addr)) return {};
  const char* const made =
      inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
  return made == nullptr ? std::string() : std::string(made);
}

void add(const GENERAL_NAME& name, lb::PeerNames& names) {
  const auto keep = [](std::string text, std::vector<std::string>& place) {
    if (!text.empty() && text.find('\0') == std::string::npos) place.push_back(std::move(text));
  };
  switch (name.type) {
    case GEN_DNS:
      return keep(text_of(name.d.dNSName), names.dns);
    case GEN_URI:
      return keep(text_of(name.d.uniformResourceIdentifier), names.others);
    case GEN_EMAIL:
      return keep(text_of(name.d.rfc822Name), names.others);
    case GEN_IPADD:
      return keep(address_text(text_of(name.d.iPAddress)), names.others);
    default:
      return;
  }
}

}  // namespace

lb::PeerNames names_in(absl::string_view pem) {
  lb::PeerNames names;
  for (const CertificatePtr& certificate : read_certificates(pem, 1).certificates) {
    const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> all(
        static_cast<GENERAL_NAMES*>(
            X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
        GENERAL_NAMES_free);
    const int count = all == nullptr ? 0 : sk_GENERAL_NAME_num(all.get());
    for (int i = 0; i < count; ++i)
      add(*sk_GENERAL_NAME_value(all.get(), i), names);
  }
  ERR_clear_error();
  return names;
}

}  // namespace signalbox::actors
