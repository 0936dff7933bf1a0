// SPDX-License-Identifier: Apache-2.0
//
// route_model — which route takes a call, by the rules of gRFC A28 and A63 one by one.
//
//   routes in order ─▶ path ─▶ every header ─▶ fraction ─▶ [expected_route]
//
// The model is slow and simple. Tests compare the choices of lb::RouteTable with those of the
// model. It does not use RE2: a pattern here consists of plain characters, `.`, `*` behind one of
// them, and `|` between whole alternatives. For the fraction of a route, the model calls
// signalbox's own draw_below(), so that model and table choose the same route.

#pragma once

#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "messages/route_config.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::testing {

/// All values of a header as one text; nullopt: the header counts as absent. As in gRPC, the
/// content-type is always application/grpc, and binary headers ("-bin") count as absent.
inline std::optional<std::string> model_value(const TestHeaders& headers, const std::string& name) {
  if (name == "content-type") return "application/grpc";
  if (name.ends_with("-bin")) return std::nullopt;
  std::optional<std::string> text;
  for (const auto& [key, value] : headers.all()) {
    if (key == name) text = text ? *text + "," + value : value;
  }
  return text;
}

inline std::string model_lower(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

inline bool model_alternative(std::string_view regex, std::string_view text) {
  if (regex.empty()) return text.empty();
  const bool first = !text.empty() && ((regex[0] == '.' && text[0] != '\n') || regex[0] == text[0]);
  if (regex.size() > 1 && regex[1] == '*') {
    return model_alternative(regex.substr(2), text) ||
           (first && model_alternative(regex, text.substr(1)));
  }
  return first && model_alternative(regex.substr(1), text.substr(1));
}

inline bool model_regex(std::string_view regex, std::string_view text) {
  const std::size_t bar = regex.find('|');
  if (model_alternative(regex.substr(0, bar), text)) return true;
  return bar != std::string_view::npos && model_regex(regex.substr(bar + 1), text);
}

inline bool model_text(const TextMatcher& matcher, std::string text) {
  if (matcher.kind == TextMatcher::Kind::kRegex) return model_regex(matcher.text, text);
  std::string wanted = matcher.text;
  if (matcher.ignore_case) {
    wanted = model_lower(wanted);
    text = model_lower(text);
  }
  switch (matcher.kind) {
    case TextMatcher::Kind::kExact:
      return text == wanted;
    case TextMatcher::Kind::kPrefix:
      return text.starts_with(wanted);
    case TextMatcher::Kind::kSuffix:
      return text.ends_with(wanted);
    default:
      return text.find(wanted) != std::string::npos;
  }
}

inline bool model_range(const IntegerRange& range, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && range.start <= number &&
         number < range.end;
}

inline bool model_header(const HeaderMatcher& header, const TestHeaders& headers) {
  auto value = model_value(headers, header.name);
  if (!value && header.missing_is_empty) value.emplace();
  if (const auto* presence = std::get_if<PresenceMatcher>(&header.matcher))
    return (value.has_value() == presence->present) != header.invert;
  if (!value) return false;
  const auto* range = std::get_if<IntegerRange>(&header.matcher);
  const bool matches = range != nullptr ? model_range(*range, *value)
                                        : model_text(std::get<TextMatcher>(header.matcher), *value);
  return matches != header.invert;
}

inline bool model_route(const RouteMatch& match,
                        std::size_t position,
                        const std::string& path,
                        const TestHeaders& headers,
                        std::uint64_t seed) {
  if (!model_text(match.path, path)) return false;
  for (const HeaderMatcher& header : match.headers) {
    if (!model_header(header, headers)) return false;
  }
  return !match.fraction_per_million ||
         draw_below(seed, Salt::kRouteFraction, 1'000'000, position) < *match.fraction_per_million;
}

/// The position of the route that takes the call; nullopt: no route does.
inline std::optional<std::size_t> expected_route(const VirtualHost& host,
                                                 const std::string& path,
                                                 const TestHeaders& headers,
                                                 std::uint64_t seed) {
  for (std::size_t position = 0; position < host.routes.size(); ++position) {
    if (model_route(host.routes[position].match, position, path, headers, seed)) return position;
  }
  return std::nullopt;
}

}  // namespace signalbox::testing
