// SPDX-License-Identifier: Apache-2.0
#include "actors/io/connection_security.hpp"

#include <algorithm>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::actors {
namespace {

using Kind = ConnectionSecurity::Kind;

bool has_any(absl::string_view reason, std::initializer_list<absl::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](absl::string_view part) { return absl::StrContains(reason, part); });
}

// Whether gRPC's reason says that the server closed the connection without an answer.
bool was_closed(absl::string_view reason) {
  return has_any(reason, {"Socket closed", "Connection reset by peer", "Broken pipe"});
}

std::string question_of_plaintext(absl::string_view reason) {
  if (was_closed(reason)) return "; the connection is plaintext: does the server want TLS?";
  if (has_any(reason, {"Failed parsing HTTP/2"}))
    return "; the connection is plaintext HTTP/2: does the server want TLS, or another protocol?";
  return "";
}

std::string question_of_tls(absl::string_view reason, const ConnectionSecurity& security) {
  if (has_any(reason, {"wrong version number"}))
    return "; the server's answer is not TLS: is the server plaintext?";
  if (is_certificate_refused(reason)) {
    return absl::StrCat("; is the server's certificate signed by a certificate of ",
                        security.roots,
                        ", and is today between the dates of both?");
  }
  if (!was_closed(reason) && !has_any(reason, {"alert"})) return "";
  return security.has_identity ? "; does the server trust the client's certificate?"
                               : "; does the server want a client certificate?";
}

}  // namespace

ConnectionSecurity security_of(const xds::ChannelCredentials& configured) {
  const auto* tls = std::get_if<xds::TlsCredentials>(&configured);
  if (tls == nullptr) return {.kind = Kind::kPlaintext};
  const std::string& ca = tls->files.ca_certificate_file;
  return {.kind = Kind::kTls,
          .has_identity = !tls->files.certificate_file.empty(),
          .roots = ca.empty() ? "the system's roots" : absl::StrCat("ca_certificate_file ", ca)};
}

ConnectionSecurity security_of(const UpstreamTls& tls) {
  const auto* provider = std::get_if<CertificateProvider>(&tls.roots);
  return {.kind = Kind::kTls,
          .has_identity = tls.identity.has_value(),
          .roots = provider == nullptr
                       ? "the system's roots"
                       : absl::StrCat("the ca_certificate_file of certificate provider instance \"",
                                      provider->instance_name,
                                      "\"")};
}

bool is_certificate_refused(absl::string_view reason) {
  return absl::StrContains(reason, "certificate verify failed");
}

std::string with_question(absl::string_view reason,
                          const ConnectionSecurity& security,
                          absl::string_view verdict) {
  if (!verdict.empty()) return absl::StrCat(reason, ": ", verdict);
  switch (security.kind) {
    case Kind::kPlaintext:
      return absl::StrCat(reason, question_of_plaintext(reason));
    case Kind::kTls:
      return absl::StrCat(reason, question_of_tls(reason, security));
    case Kind::kUnknown:
      return std::string(reason);
  }
  return std::string(reason);
}

}  // namespace signalbox::actors
