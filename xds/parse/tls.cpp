// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/tls.hpp"

#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

namespace tls = envoy::extensions::transport_sockets::tls::v3;
using tls::CertificateValidationContext;
using tls::CommonTlsContext;
using Roots = std::optional<decltype(UpstreamTls::roots)>;

void refuse_nul(absl::string_view text, const Field& field) {
  if (text.find('\0') != absl::string_view::npos)
    field.add(absl::StrCat("must not contain a NUL, found ", in_quotes(text)));
}

void refuse(bool is_set, const Field& field) {
  if (is_set) field.add("must not be set: it is not supported, found a value");
}

// A template, because the two messages for a provider (one of them deprecated) have the same
// fields.
template <typename Instance>
CertificateProvider parse_provider(const Instance& proto, const Field& field) {
  const Field name = field.at("instance_name");
  const NameSet& known = field.options().certificate_providers;
  if (!known.contains(proto.instance_name())) {
    name.add(absl::StrCat("must be one of the bootstrap's certificate_providers (",
                          known.empty() ? "none" : absl::StrJoin(known, ", "),
                          "), found ",
                          in_quotes(proto.instance_name())));
  }
  refuse_nul(proto.certificate_name(), field.at("certificate_name"));
  return {proto.instance_name(), proto.certificate_name()};
}

// Typed matchers are not supported. A context that has only typed matchers is refused, because the
// server's name would not be checked at all.
void require_checked_names(const CertificateValidationContext& proto, const Field& field) {
  if (proto.match_typed_subject_alt_names().empty()) return;
  if (!proto.match_subject_alt_names().empty()) return;
  field.at("match_subject_alt_names")
      .add(absl::StrCat(
          "must be set: match_typed_subject_alt_names is not supported, found none and ",
          proto.match_typed_subject_alt_names_size(),
          " typed"));
}

void parse_names(const CertificateValidationContext& proto,
                 UpstreamTls& result,
                 const Field& field) {
  for (int i = 0; i < proto.match_subject_alt_names_size() && !field.is_enough(); ++i) {
    const Field place = field.at("match_subject_alt_names", static_cast<std::size_t>(i));
    TextMatcher matcher = parse_text_matcher(proto.match_subject_alt_names(i), place);
    refuse_nul(matcher.text, place);
    result.subject_alt_names.push_back(std::move(matcher));
  }
}

Roots parse_validation(const CertificateValidationContext& proto,
                       UpstreamTls& result,
                       const Field& field) {
  parse_names(proto, result, field);
  require_checked_names(proto, field);
  refuse(!proto.verify_certificate_spki().empty(), field.at("verify_certificate_spki"));
  refuse(!proto.verify_certificate_hash().empty(), field.at("verify_certificate_hash"));
  refuse(proto.require_signed_certificate_timestamp().value(),
         field.at("require_signed_certificate_timestamp"));
  refuse(proto.has_crl(), field.at("crl"));
  refuse(proto.has_custom_validator_config(), field.at("custom_validator_config"));
  if (proto.has_ca_certificate_provider_instance()) {
    return parse_provider(proto.ca_certificate_provider_instance(),
                          field.at("ca_certificate_provider_instance"));
  }
  if (proto.has_system_root_certs()) {
    refuse(!field.options().system_roots, field.at("system_root_certs"));
    return SystemRoots{};
  }
  return std::nullopt;
}

Roots parse_combined(const CommonTlsContext::CombinedCertificateValidationContext& proto,
                     UpstreamTls& result,
                     const Field& field) {
  Roots roots = parse_validation(
      proto.default_validation_context(), result, field.at("default_validation_context"));
  const bool has_provider =
      roots.has_value() && std::holds_alternative<CertificateProvider>(*roots);
  if (has_provider || !proto.has_validation_context_certificate_provider_instance()) return roots;
  return parse_provider(proto.validation_context_certificate_provider_instance(),
                        field.at("validation_context_certificate_provider_instance"));
}

Roots parse_roots(const CommonTlsContext& proto, UpstreamTls& result, const Field& field) {
  switch (proto.validation_context_type_case()) {
    case CommonTlsContext::kValidationContext:
      return parse_validation(proto.validation_context(), result, field.at("validation_context"));
    case CommonTlsContext::kCombinedValidationContext:
      return parse_combined(
          proto.combined_validation_context(), result, field.at("combined_validation_context"));
    case CommonTlsContext::kValidationContextCertificateProviderInstance:
      return parse_provider(proto.validation_context_certificate_provider_instance(),
                            field.at("validation_context_certificate_provider_instance"));
    case CommonTlsContext::kValidationContextSdsSecretConfig:
      refuse(true, field.at("validation_context_sds_secret_config"));
      break;
    case CommonTlsContext::VALIDATION_CONTEXT_TYPE_NOT_SET:
      break;
  }
  return std::nullopt;
}

// Any other source of a certificate is an error only if there is no provider.
std::optional<CertificateProvider> parse_identity(const CommonTlsContext& proto,
                                                  const Field& field) {
  if (proto.has_tls_certificate_provider_instance()) {
    return parse_provider(proto.tls_certificate_provider_instance(),
                          field.at("tls_certificate_provider_instance"));
  }
  if (proto.has_tls_certificate_certificate_provider_instance()) {
    return parse_provider(proto.tls_certificate_certificate_provider_instance(),
                          field.at("tls_certificate_certificate_provider_instance"));
  }
  refuse(!proto.tls_certificates().empty(), field.at("tls_certificates"));
  refuse(!proto.tls_certificate_sds_secret_configs().empty(),
         field.at("tls_certificate_sds_secret_configs"));
  return std::nullopt;
}

}  // namespace

UpstreamTls parse_tls(const tls::UpstreamTlsContext& proto, const Field& field) {
  const Field common = field.at("common_tls_context");
  const CommonTlsContext& context = proto.common_tls_context();
  UpstreamTls result;
  const std::size_t errors_before = field.errors_so_far();
  Roots roots = parse_roots(context, result, common);
  if (roots.has_value()) {
    result.roots = *std::move(roots);
  } else if (field.errors_so_far() == errors_before) {
    common.add("must name a provider of root certificates, or the system's, found none");
  }
  result.identity = parse_identity(context, common);
  refuse(context.has_tls_params(), common.at("tls_params"));
  refuse(context.has_custom_handshaker(), common.at("custom_handshaker"));
  return result;
}

}  // namespace signalbox::xds
