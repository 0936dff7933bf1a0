// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/route_match.hpp"

#include <string>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using HeaderProto = envoy::config::route::v3::HeaderMatcher;
using MatchProto = envoy::config::route::v3::RouteMatch;
using Kind = TextMatcher::Kind;
using ValueMatcher = std::variant<TextMatcher, IntegerRange, PresenceMatcher>;

TextMatcher parse_path(const MatchProto& proto, const Field& field) {
  const bool ignore_case = proto.has_case_sensitive() && !proto.case_sensitive().value();
  absl::string_view found = "none";
  switch (proto.path_specifier_case()) {
    case MatchProto::kPrefix:
      return {Kind::kPrefix, proto.prefix(), ignore_case};
    case MatchProto::kPath:
      return {Kind::kExact, proto.path(), ignore_case};
    case MatchProto::kSafeRegex:
      return parse_regex(proto.safe_regex(), field.at("safe_regex"));
    case MatchProto::kConnectMatcher:
      found = "connect_matcher";
      break;
    case MatchProto::kPathSeparatedPrefix:
      found = "path_separated_prefix";
      break;
    case MatchProto::kPathMatchPolicy:
      found = "path_match_policy";
      break;
    case MatchProto::PATH_SPECIFIER_NOT_SET:
      break;
  }
  field.at("path_specifier").add(absl::StrCat("must be prefix, path or safe_regex, found ", found));
  return {};
}

IntegerRange parse_range(const envoy::type::v3::Int64Range& proto, const Field& field) {
  if (proto.end() < proto.start()) {
    field.add(absl::StrCat(
        "must not end before it starts, found [", proto.start(), ", ", proto.end(), ")"));
  }
  return IntegerRange{proto.start(), proto.end()};
}

ValueMatcher parse_header_value(const HeaderProto& proto, const Field& field) {
  switch (proto.header_match_specifier_case()) {
    case HeaderProto::kExactMatch:
      return TextMatcher{Kind::kExact, proto.exact_match()};
    case HeaderProto::kPrefixMatch:
      return TextMatcher{Kind::kPrefix, proto.prefix_match()};
    case HeaderProto::kSuffixMatch:
      return TextMatcher{Kind::kSuffix, proto.suffix_match()};
    case HeaderProto::kContainsMatch:
      return TextMatcher{Kind::kContains, proto.contains_match()};
    case HeaderProto::kSafeRegexMatch:
      return parse_regex(proto.safe_regex_match(), field.at("safe_regex_match"));
    case HeaderProto::kStringMatch:
      return parse_text_matcher(proto.string_match(), field.at("string_match"));
    case HeaderProto::kRangeMatch:
      return parse_range(proto.range_match(), field.at("range_match"));
    case HeaderProto::kPresentMatch:
      return PresenceMatcher{proto.present_match()};
    case HeaderProto::HEADER_MATCH_SPECIFIER_NOT_SET:
      break;
  }
  field.at("header_match_specifier")
      .add(
          "must be string_match, safe_regex_match, exact_match, prefix_match, suffix_match, "
          "contains_match, range_match or present_match, found none");
  return TextMatcher{};
}

HeaderMatcher parse_header(const HeaderProto& proto, const Field& field) {
  require_name(proto.name(), field.at("name"));
  return HeaderMatcher{absl::AsciiStrToLower(proto.name()),
                       parse_header_value(proto, field),
                       proto.invert_match(),
                       proto.treat_missing_header_as_empty()};
}

}  // namespace

// The path of a gRPC call, "/service/method", has two parts, and neither is empty.
bool can_match_grpc(const MatchProto& proto) {
  const bool is_prefix = proto.path_specifier_case() == MatchProto::kPrefix;
  if (!is_prefix && proto.path_specifier_case() != MatchProto::kPath) return true;
  absl::string_view rest = is_prefix ? proto.prefix() : proto.path();
  if (is_prefix && rest.empty()) return true;
  if (!absl::ConsumePrefix(&rest, "/")) return false;
  const std::size_t slash = rest.find('/');
  if (slash == absl::string_view::npos) return is_prefix;
  const absl::string_view method = rest.substr(slash + 1);
  return slash > 0 && !absl::StrContains(method, "/") && (is_prefix || !method.empty());
}

RouteMatch parse_route_match(const MatchProto& proto, const Field& field) {
  RouteMatch match;
  match.path = parse_path(proto, field);
  for (int i = 0; i < proto.headers_size() && !field.is_enough(); ++i) {
    match.headers.push_back(
        parse_header(proto.headers(i), field.at("headers", static_cast<std::size_t>(i))));
  }
  if (proto.runtime_fraction().has_default_value()) {
    match.fraction_per_million = parse_fraction(proto.runtime_fraction().default_value(),
                                                field.at("runtime_fraction.default_value"));
  }
  return match;
}

}  // namespace signalbox::xds
