// SPDX-License-Identifier: Apache-2.0
#include "lb/route/route_match.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "lb/header_value.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint32_t kMillion = 1'000'000;
// Up to this many routes are tried one by one, in the configured order, which is faster than the
// index.
constexpr std::size_t kFewRoutes = 8;
// Up to this many regular expressions that begin with the same text are tried one by one. More than
// these are matched in one pass (RegexSet).
constexpr std::size_t kFewRegexes = 8;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// The index's number for a route: its position, and whether the path is its only condition. A
// call that matches such a plain route need not read the route's Entry.
std::uint32_t mark_of(std::uint32_t position, bool is_plain) {
  return position << 1U | (is_plain ? 1U : 0U);
}

std::uint32_t position_of(std::uint32_t mark) {
  return mark >> 1U;
}

bool is_plain(std::uint32_t mark) {
  return (mark & 1U) != 0;
}

bool contains(absl::string_view text, absl::string_view part, bool ignore_case) {
  if (!ignore_case) return absl::StrContains(text, part);
  const auto found =
      std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
        return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
               absl::ascii_tolower(static_cast<unsigned char>(b));
      });
  return found != text.end() || part.empty();
}

// How many different regular expressions the paths and headers of the routes have. RegexPool
// compiles each of them once.
std::size_t count_regexes(const VirtualHost& host) {
  absl::flat_hash_set<absl::string_view> patterns;
  const auto see = [&](const TextMatcher& matcher) {
    if (matcher.kind == TextMatcher::Kind::kRegex) patterns.insert(matcher.text);
  };
  for (const Route& route : host.routes) {
    see(route.match.path);
    for (const HeaderMatcher& header : route.match.headers) {
      if (const auto* text = std::get_if<TextMatcher>(&header.matcher)) see(*text);
    }
  }
  return patterns.size();
}

bool within_fraction(std::optional<std::uint32_t> per_million,
                     std::uint64_t seed,
                     std::size_t position) {
  return !per_million || draw_below(seed, Salt::kRouteFraction, kMillion, position) < *per_million;
}

}  // namespace

// --- text -----------------------------------------------------------------

CompiledText::CompiledText(const TextMatcher& matcher, RegexPool* pool) : matcher_(matcher) {
  if (matcher.kind != TextMatcher::Kind::kRegex) return;
  regex_ = pool == nullptr ? compile_regex(matcher.text) : pool->get(matcher.text);
}

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

CompiledHeader::CompiledHeader(const HeaderMatcher& matcher, RegexPool* pool)
    : name_(matcher.name),
      matcher_(std::visit(
          Overloaded{
              [&](const TextMatcher& text) -> decltype(matcher_) {
                return CompiledText(text, pool);
              },
              [](const IntegerRange& range) -> decltype(matcher_) { return range; },
              [](const PresenceMatcher& presence) -> decltype(matcher_) { return presence; },
          },
          matcher.matcher)),
      invert_(matcher.invert),
      missing_is_empty_(matcher.missing_is_empty) {}

bool CompiledHeader::matches(const std::optional<absl::string_view>& value) const {
  if (!value.has_value() && missing_is_empty_) return matches("");
  if (const auto* presence = std::get_if<PresenceMatcher>(&matcher_)) {
    return (value.has_value() == presence->present) != invert_;
  }
  return value.has_value() && matches_text(*value) != invert_;
}

bool CompiledHeader::matches_text(absl::string_view value) const {
  if (const auto* text = std::get_if<CompiledText>(&matcher_)) return text->matches(value);
  const auto& range = std::get<IntegerRange>(matcher_);
  std::int64_t number = 0;
  return absl::SimpleAtoi(value, &number) && range.start <= number && number < range.end;
}

// --- routes ---------------------------------------------------------------

struct RouteTable::Asked {
  // Without this constructor, the memory of all headers would be zeroed for each call.
  explicit Asked(const PickArgs& call_args) : args(call_args) {}

  const PickArgs& args;
  std::optional<CallHeaders> headers;  ///< Set once a route asks for a header.
};

RouteTable::RouteTable(const VirtualHost& host) {
  RegexPool pool(count_regexes(host));
  std::map<std::string, std::size_t> places;
  entries_.reserve(host.routes.size());
  for (const Route& route : host.routes) {
    Entry& entry = entries_.emplace_back();
    entry.fraction_per_million = route.match.fraction_per_million;
    entry.headers.reserve(route.match.headers.size());
    for (const HeaderMatcher& header : route.match.headers) {
      entry.headers.push_back({places.try_emplace(header.name, places.size()).first->second,
                               CompiledHeader(header, &pool)});
    }
  }
  if (entries_.size() > kFewRoutes) {
    build_index(host, pool);
    return;
  }
  for (std::size_t position = 0; position < entries_.size(); ++position)
    entries_[position].path.emplace(host.routes[position].match.path, &pool);
}

void RouteTable::build_index(const VirtualHost& host, RegexPool& pool) {
  std::vector<PathIndex::Entry> as_written;
  std::vector<PathIndex::Entry> in_any_case;
  std::map<std::string, std::vector<std::uint32_t>> alike;
  std::size_t regexes = 0;
  for (std::uint32_t position = 0; position < entries_.size(); ++position) {
    const TextMatcher& path = host.routes[position].match.path;
    Entry& entry = entries_[position];
    const bool is_exact = path.kind == TextMatcher::Kind::kExact;
    if (is_exact || path.kind == TextMatcher::Kind::kPrefix) {
      const bool is_plain = entry.headers.empty() && !entry.fraction_per_million;
      (path.ignore_case ? in_any_case : as_written)
          .push_back({path.text, is_exact, mark_of(position, is_plain)});
      continue;
    }
    SIGNALBOX_INVARIANT(path.kind == TextMatcher::Kind::kRegex,
                        "a route's path is exact, a prefix or a regex");
    if (!entry.path.emplace(path, &pool).can_match()) continue;
    alike[literal_prefix(path.text)].push_back(position);
    ++regexes;
  }
  for (auto& [prefix, positions] : alike) {
    const double share = static_cast<double>(regexes) / static_cast<double>(positions.size());
    if (positions.size() > kFewRegexes) positions = {group(std::move(positions), host, share)};
    for (const std::uint32_t position : positions)
      as_written.push_back({prefix, false, mark_of(position, false)});
  }
  as_written_ = PathIndex(std::move(as_written), false);
  if (!in_any_case.empty())
    in_any_case_ = std::make_unique<const PathIndex>(std::move(in_any_case), true);
}

// Makes a group of these routes, which are then matched in one pass. Returns the position of its
// first route; the index has the group at that position.
std::uint32_t RouteTable::group(std::vector<std::uint32_t> positions,
                                const VirtualHost& host,
                                double share) {
  std::vector<std::string> patterns;
  for (const std::uint32_t position : positions)
    patterns.push_back(host.routes[position].match.path.text);
  const std::uint32_t first = positions.front();
  entries_[first].group =
      std::make_unique<const Group>(Group{std::move(positions), RegexSet(patterns, share)});
  return first;
}

template <typename Sink>
std::optional<std::size_t> RouteTable::find(const PickArgs& args, const Sink& sink) const {
  Asked call(args);
  if (entries_.size() > kFewRoutes) return find_in_index(call, sink);
  for (std::uint32_t position = 0; position < entries_.size(); ++position) {
    if (matches(position, call, sink)) return position;
  }
  return std::nullopt;
}

// Tries the candidates in the order of their positions, until one matches. The index has a group at
// the position of its first route, but a later route of the group may be the one that matches. Then
// the candidates before that later route are tried before it is chosen.
template <typename Sink>
std::optional<std::size_t> RouteTable::find_in_index(Asked& call, const Sink& sink) const {
  Candidates found;
  as_written_.collect(call.args.path, found);
  if (in_any_case_ != nullptr) in_any_case_->collect(call.args.path, found);

  std::uint32_t best = kNone;
  while (!found.empty()) {
    const auto next = std::ranges::min_element(found, {}, &Positions::front);
    const std::uint32_t position = position_of(next->front());
    if (position >= best) break;
    if (is_plain(next->front())) return position;
    if (const auto& group = entries_[position].group) {
      best = std::min(best, first_of(*group, call, sink));
    } else if (matches(position, call, sink)) {
      return position;
    }
    next->remove_prefix(1);
    if (next->empty()) {
      *next = found.back();
      found.pop_back();
    }
  }
  return best == kNone ? std::nullopt : std::optional<std::size_t>(best);
}

template <typename Sink>
bool RouteTable::matches(std::uint32_t position, Asked& call, const Sink& sink) const {
  const auto& path = entries_[position].path;
  return (!path || path->matches(call.args.path)) && others_match(position, call, sink);
}

template <typename Sink>
bool RouteTable::others_match(std::uint32_t position, Asked& call, const Sink& sink) const {
  const Entry& entry = entries_[position];
  if (!entry.headers.empty() && !call.headers) call.headers.emplace(call.args.headers);
  const auto header_matches = [&](const PlacedHeader& placed) {
    return placed.header.matches(call.headers->get(placed.place, placed.header.name()));
  };
  const auto missed = std::ranges::find_if_not(entry.headers, header_matches);
  const bool headers_match = missed == entry.headers.end();
  const bool is_taken =
      headers_match && within_fraction(entry.fraction_per_million, call.args.seed, position);
  if (!is_taken) {
    sink.tell([&] {
      return PickStep{
          "route",
          absl::StrCat("not route ", position),
          headers_match
              ? absl::StrCat("its path matches, but of a million calls it takes ",
                             *entry.fraction_per_million,
                             ", and this one drew ",
                             draw_below(call.args.seed, Salt::kRouteFraction, kMillion, position))
              : absl::StrCat(
                    "its path matches, but header \"", missed->header.name(), "\" does not"),
          "RDS"};
    });
  }
  return is_taken;
}

// The first route of the group that matches. If RE2::Set needs more memory than it may use, the
// patterns are tried one by one.
template <typename Sink>
std::uint32_t RouteTable::first_of(const Group& group, Asked& call, const Sink& sink) const {
  const auto matched = group.set.match(call.args.path);
  if (!matched) {
    const auto found = std::ranges::find_if(
        group.positions, [&](std::uint32_t position) { return matches(position, call, sink); });
    return found == group.positions.end() ? kNone : *found;
  }
  for (const int i : *matched) {
    const std::uint32_t position = group.positions[static_cast<std::size_t>(i)];
    if (others_match(position, call, sink)) return position;
  }
  return kNone;
}

template std::optional<std::size_t> RouteTable::find(const PickArgs&, const Silent&) const;
template std::optional<std::size_t> RouteTable::find(const PickArgs&, const Telling&) const;

}  // namespace signalbox::lb
