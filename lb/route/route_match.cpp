// SPDX-License-Identifier: Apache-2.0
#include "lb/route/route_match.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "lb/route/header_value.hpp"
#include "lb/route/regex.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint32_t kMillion = 1'000'000;

bool contains(absl::string_view text, absl::string_view part, bool ignore_case) {
  if (!ignore_case) return absl::StrContains(text, part);
  const auto found =
      std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
        return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
               absl::ascii_tolower(static_cast<unsigned char>(b));
      });
  return found != text.end() || part.empty();
}

bool within_fraction(std::optional<std::uint32_t> per_million,
                     std::uint64_t seed,
                     std::size_t position) {
  return !per_million || draw_below(seed, Salt::kRouteFraction, kMillion, position) < *per_million;
}

}  // namespace

// --- text -----------------------------------------------------------------

CompiledText::CompiledText(const TextMatcher& matcher)
    : matcher_(matcher),
      regex_(matcher.kind == TextMatcher::Kind::kRegex ? compile_regex(matcher.text) : nullptr) {}

bool CompiledText::matches(absl::string_view text) const {
  const bool ignore_case = matcher_.ignore_case;
  switch (matcher_.kind) {
    case TextMatcher::Kind::kExact:
      return ignore_case ? absl::EqualsIgnoreCase(text, matcher_.text) : text == matcher_.text;
    case TextMatcher::Kind::kPrefix:
      return ignore_case ? absl::StartsWithIgnoreCase(text, matcher_.text)
                         : absl::StartsWith(text, matcher_.text);
    case TextMatcher::Kind::kSuffix:
      return ignore_case ? absl::EndsWithIgnoreCase(text, matcher_.text)
                         : absl::EndsWith(text, matcher_.text);
    case TextMatcher::Kind::kContains:
      return contains(text, matcher_.text, ignore_case);
    case TextMatcher::Kind::kRegex:
      return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *regex_);
  }
  return false;
}

// --- headers --------------------------------------------------------------

CompiledHeader::CompiledHeader(const HeaderMatcher& matcher)
    : name_(matcher.name),
      matcher_(std::visit(
          Overloaded{
              [](const TextMatcher& text) -> decltype(matcher_) { return CompiledText(text); },
              [](const IntegerRange& range) -> decltype(matcher_) { return range; },
              [](const PresenceMatcher& presence) -> decltype(matcher_) { return presence; },
          },
          matcher.matcher)),
      invert_(matcher.invert) {}

bool CompiledHeader::matches(const HeaderSource* headers) const {
  const HeaderValue value(headers, name_);
  if (const auto* presence = std::get_if<PresenceMatcher>(&matcher_)) {
    return (value.get().has_value() == presence->present) != invert_;
  }
  return value.get().has_value() && matches_value(*value.get()) != invert_;
}

bool CompiledHeader::matches_value(absl::string_view value) const {
  if (const auto* text = std::get_if<CompiledText>(&matcher_)) return text->matches(value);
  const auto& range = std::get<IntegerRange>(matcher_);
  std::int64_t number = 0;
  return absl::SimpleAtoi(value, &number) && range.start <= number && number < range.end;
}

// --- routes ---------------------------------------------------------------

RouteTable::RouteTable(const VirtualHost& host) {
  entries_.reserve(host.routes.size());
  for (const Route& route : host.routes) {
    Entry entry{CompiledText(route.match.path), {}, route.match.fraction_per_million};
    entry.headers.reserve(route.match.headers.size());
    for (const HeaderMatcher& header : route.match.headers)
      entry.headers.emplace_back(header);
    entries_.push_back(std::move(entry));
  }
}

std::optional<std::size_t> RouteTable::find(const PickArgs& args) const {
  for (std::size_t position = 0; position < entries_.size(); ++position) {
    const Entry& entry = entries_[position];
    const auto header_matches = [&](const CompiledHeader& header) {
      return header.matches(args.headers);
    };
    if (entry.path.matches(args.path) && std::ranges::all_of(entry.headers, header_matches) &&
        within_fraction(entry.fraction_per_million, args.seed, position)) {
      return position;
    }
  }
  return std::nullopt;
}

}  // namespace signalbox::lb
