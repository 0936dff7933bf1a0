// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/well_known.hpp"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include <re2/re2.h>

#include "signalbox/udpa/type/v1/typed_struct.pb.h"
#include "signalbox/xds/type/v3/typed_struct.pb.h"
#include "xds/limits.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::core::v3::ConfigSource;
using envoy::type::v3::FractionalPercent;

constexpr std::int64_t kMaxSeconds = 315'576'000'000;
constexpr std::int32_t kMaxNanos = 999'999'999;
constexpr std::chrono::hours kCentury{24 * 36'525};
constexpr std::uint64_t kMillion = 1'000'000;

// The type_url inside a TypedStruct; both TypedStructs have the same fields.
template <typename TypedStruct>
std::optional<std::string> struct_type(const ::google::protobuf::Any& any, const Field& field) {
  TypedStruct typed_struct;
  if (!decode(any.value(), typed_struct, field.at("value"))) return std::nullopt;
  if (typed_struct.type_url().empty()) {
    field.at("value.type_url").add("must be set in a TypedStruct, found none");
    return std::nullopt;
  }
  return std::string(api_name(typed_struct.type_url()));
}

absl::string_view name_of(ConfigSource::ConfigSourceSpecifierCase source) {
  switch (source) {
    case ConfigSource::kPath:
      return "path";
    case ConfigSource::kApiConfigSource:
      return "api_config_source";
    case ConfigSource::kAds:
      return "ads";
    case ConfigSource::kSelf:
      return "self";
    case ConfigSource::kPathConfigSource:
      return "path_config_source";
    case ConfigSource::CONFIG_SOURCE_SPECIFIER_NOT_SET:
      break;
  }
  return "none";
}

}  // namespace

void add_undecodable(absl::string_view what, std::size_t size, const Field& field) {
  field.add(absl::StrCat("must be of type ", what, ", found ", size, " bytes that are not"));
}

ReceivedResource undecodable(absl::string_view type,
                             absl::string_view what,
                             absl::string_view bytes) {
  return {"",
          absl::InvalidArgumentError(absl::StrCat(
              type, " resource must be ", what, ", found ", bytes.size(), " bytes that are not"))};
}

Duration parse_duration(const ::google::protobuf::Duration& proto, const Field& field) {
  bool valid = true;
  if (proto.seconds() < 0 || proto.seconds() > kMaxSeconds) {
    field.at("seconds").add(
        absl::StrCat("must be in [0, ", kMaxSeconds, "], found ", proto.seconds()));
    valid = false;
  }
  if (proto.nanos() < 0 || proto.nanos() > kMaxNanos) {
    field.at("nanos").add(absl::StrCat("must be in [0, ", kMaxNanos, "], found ", proto.nanos()));
    valid = false;
  }
  if (!valid) return Duration::zero();
  if (std::chrono::seconds(proto.seconds()) >= kCentury) return kCentury;
  return std::chrono::seconds(proto.seconds()) + std::chrono::nanoseconds(proto.nanos());
}

std::uint32_t parse_fraction(const FractionalPercent& proto, const Field& field) {
  std::uint64_t per_million = proto.numerator();
  switch (proto.denominator()) {
    case FractionalPercent::HUNDRED:
      per_million *= 10'000;
      break;
    case FractionalPercent::TEN_THOUSAND:
      per_million *= 100;
      break;
    case FractionalPercent::MILLION:
      break;
    default:
      field.at("denominator")
          .add(absl::StrCat("must be HUNDRED, TEN_THOUSAND or MILLION, found ",
                            static_cast<int>(proto.denominator())));
  }
  return static_cast<std::uint32_t>(std::min(per_million, kMillion));
}

std::optional<std::string> config_type(const ::google::protobuf::Any& any, const Field& field) {
  const absl::string_view name = api_name(any.type_url());
  if (name.empty()) {
    field.at("type_url").add(absl::StrCat("must name a type, found ", quoted(any.type_url())));
    return std::nullopt;
  }
  if (any.type_url() == type_url_of<signalbox::xds::type::v3::TypedStruct>()) {
    return struct_type<signalbox::xds::type::v3::TypedStruct>(any, field);
  }
  if (any.type_url() == type_url_of<udpa::type::v1::TypedStruct>()) {
    return struct_type<udpa::type::v1::TypedStruct>(any, field);
  }
  return std::string(name);
}

void require_ads(const ConfigSource& source, const Field& field) {
  if (source.has_ads() || source.has_self()) return;
  field.add(
      absl::StrCat("must be ads or self, found ", name_of(source.config_source_specifier_case())));
}

void require_name(absl::string_view name, const Field& field) {
  if (name.empty()) field.add("must not be empty, found \"\"");
  if (name.size() > kMaxNameLength) {
    field.add(absl::StrCat("must not be longer than ",
                           kMaxNameLength,
                           " bytes, found ",
                           name.size(),
                           " bytes: ",
                           quoted(name)));
  }
}

TextMatcher parse_regex(const envoy::type::matcher::v3::RegexMatcher& proto, const Field& field) {
  const std::string& text = proto.regex();
  const Field regex = field.at("regex");
  if (text.size() > kMaxRegexLength) {
    regex.add(
        absl::StrCat("must not be longer than ", kMaxRegexLength, " bytes, found ", text.size()));
  } else {
    const RE2 compiled(text, RE2::Quiet);
    if (!compiled.ok()) {
      regex.add(
          absl::StrCat("must be an RE2 pattern, found ", quoted(text), ": ", compiled.error()));
    }
  }
  return TextMatcher{TextMatcher::Kind::kRegex, text, false};
}

}  // namespace signalbox::xds
