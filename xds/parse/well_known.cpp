// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/well_known.hpp"

#include <algorithm>
#include <chrono>
#include <climits>

#include "absl/strings/str_cat.h"
#include <google/protobuf/stubs/logging.h>

#include "messages/century.hpp"
#include "xds/limits.hpp"
#include "xds/parse/regex_budget.hpp"
#include "xds/utf8.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::core::v3::ConfigSource;
using envoy::type::matcher::v3::RegexMatcher;
using envoy::type::matcher::v3::StringMatcher;
using envoy::type::v3::FractionalPercent;

constexpr std::int64_t kMaxSeconds = 315'576'000'000;
constexpr std::int32_t kMaxNanos = 999'999'999;
constexpr std::uint64_t kMillion = 1'000'000;

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

bool decode(absl::string_view bytes, ::google::protobuf::Message& message) {
  const ::google::protobuf::LogSilencer silent;
  return bytes.size() <= INT_MAX &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// kMostPerByte: the most memory, in bytes, that one byte of a serialised message takes once it is
// decoded.
bool may_outweigh(absl::string_view bytes, std::size_t most) {
  constexpr std::size_t kMostPerByte = 256;
  return bytes.size() > most / kMostPerByte;
}

bool decode(absl::string_view bytes, ::google::protobuf::Message& message, const Field& field) {
  const auto& type = *message.GetDescriptor();
  const std::size_t most = field.options().limits.max_decoded_memory;
  if (may_outweigh(bytes, most) && weigh(bytes, type, most) > most) {
    field.add_over_limit(
        "max_decoded_memory",
        absl::StrCat("must not take more than ", most, " bytes when decoded, found more"));
    return false;
  }
  if (decode(bytes, message)) return true;
  field.add_undecodable(why_undecodable(absl::StrCat("of type ", type.name()), bytes, type));
  return false;
}

std::string why_undecodable(absl::string_view what,
                            absl::string_view bytes,
                            const ::google::protobuf::Descriptor& type) {
  std::string why = absl::StrCat("must be ", what, ", found ", bytes.size(), " bytes that are not");
  if (const auto bad = find_bad_text(bytes, type))
    absl::StrAppend(&why, ": ", bad->field, " must be UTF-8, found ", in_quotes(bad->text));
  return why;
}

ReceivedResource undecodable(absl::string_view type,
                             absl::string_view what,
                             absl::string_view bytes,
                             const ::google::protobuf::Message& partial,
                             const std::string& name) {
  const std::string known = is_utf8(name) ? name : "";
  const std::string text = absl::StrCat(type,
                                        " resource ",
                                        known.empty() ? "" : in_quotes(known) + " ",
                                        why_undecodable(what, bytes, *partial.GetDescriptor()));
  return {known, absl::InvalidArgumentError(text), Rejection{RejectionReason::kParse, ""}};
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

void require_ads(const ConfigSource& source, const Field& field) {
  if (source.has_ads() || source.has_self()) return;
  field.add(
      absl::StrCat("must be ads or self, found ", name_of(source.config_source_specifier_case())));
}

void require_name_length(absl::string_view name, const Field& field) {
  const std::size_t most = field.options().limits.max_name_length;
  if (name.size() <= most) return;
  field.add_over_limit("max_name_length",
                       absl::StrCat("must not be longer than ",
                                    most,
                                    " bytes, found ",
                                    name.size(),
                                    " bytes: ",
                                    in_quotes(name)));
}

void require_name(absl::string_view name, const Field& field) {
  if (name.empty()) field.add("must not be empty, found \"\"");
  require_name_length(name, field);
}

std::uint32_t parse_percent(const ::google::protobuf::UInt32Value& proto, const Field& field) {
  if (proto.value() > 100) {
    field.add(absl::StrCat("must be at most 100, found ", proto.value()));
  }
  return proto.value();
}

RegexBudget& budget_of(const Field& field, RegexBudget& alone) {
  RegexBudget* shared = field.options().regexes;
  return shared == nullptr ? alone : *shared;
}

TextMatcher parse_regex(const RegexMatcher& proto, const Field& field, RegexBudget& budget) {
  const Field regex = field.at("regex");
  const RegexVerdict verdict = budget.judge(proto.regex());
  if (verdict.what.empty()) return TextMatcher{TextMatcher::Kind::kRegex, proto.regex(), false};
  if (verdict.limit.empty())
    regex.add(verdict.what);
  else
    regex.add_over_limit(verdict.limit, verdict.what);
  return {};
}

TextMatcher parse_regex(const RegexMatcher& proto, const Field& field) {
  RegexBudget alone(field.options().limits);
  return parse_regex(proto, field, budget_of(field, alone));
}

TextMatcher parse_text_matcher(const StringMatcher& proto, const Field& field) {
  using Kind = TextMatcher::Kind;
  switch (proto.match_pattern_case()) {
    case StringMatcher::kExact:
      return {Kind::kExact, proto.exact(), proto.ignore_case()};
    case StringMatcher::kPrefix:
      return {Kind::kPrefix, proto.prefix(), proto.ignore_case()};
    case StringMatcher::kSuffix:
      return {Kind::kSuffix, proto.suffix(), proto.ignore_case()};
    case StringMatcher::kContains:
      return {Kind::kContains, proto.contains(), proto.ignore_case()};
    case StringMatcher::kSafeRegex:
      return parse_regex(proto.safe_regex(), field.at("safe_regex"));
    case StringMatcher::MATCH_PATTERN_NOT_SET:
      break;
  }
  field.at("match_pattern")
      .add("must be exact, prefix, suffix, contains or safe_regex, found none");
  return {};
}

}  // namespace signalbox::xds
