// SPDX-License-Identifier: Apache-2.0
//
// RouteTable — finds the route of a virtual host that takes a call: the first that matches, in
// order.
//
//   VirtualHost ─▶ [RouteTable], compiled once ─▶ find(path, headers) ─▶ position of the route
//                     └ PathIndex: routes that may match ─▶ in order: regex, headers, fraction
//
// A route matches when its path, all of its headers and its fraction do. The index finds only
// routes with an exact path or a prefix that fits the call's path. So the cost of a call hardly
// depends on the number of routes. A regular expression is in the index by the literal text that it
// begins with. Many regular expressions that begin with the same text are matched in one pass. Up
// to eight routes are tried without an index.
//
// Immutable. find() runs on any thread, and usually allocates nothing. It allocates when several
// values of one header must be joined, or when more than sixteen prefixes of the path have routes.
// It may also allocate when it matches regular expressions: RE2 keeps states for the texts that it
// has seen.
//
// Rules that may surprise (gRFC A28, A63, and gRPC's practice)
//   – Several values of a header are compared as one text, joined by ",".
//   – When the header is absent, only a presence matcher can match. Any other matcher does not,
//     even if it is inverted. Exception: a matcher may say that an absent header counts as an empty
//     one (Envoy's; no gRFC has it).
//   – "-bin" headers count as absent; "content-type" is "application/grpc", whatever was sent.
//   – ignore_case has no effect on regular expressions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "re2/re2.h"

#include "lb/route/path_index.hpp"
#include "lb/route/regex.hpp"
#include "lb/trace.hpp"
#include "messages/pick.hpp"
#include "messages/route_config.hpp"

namespace signalbox::lb {

/// A TextMatcher, compiled. A regular expression that does not compile within 64 MiB matches no
/// text.
class CompiledText {
 public:
  /// `pool`: compiles the patterns of the snapshot; null: the pattern is compiled separately.
  explicit CompiledText(const TextMatcher& matcher, RegexPool* pool = nullptr);

  [[gnu::hot]] bool matches(absl::string_view text) const;

  /// False: no text can match, because the pattern does not compile.
  bool can_match() const { return regex_ == nullptr || regex_->ok(); }

 private:
  TextMatcher matcher_;
  RegexPtr regex_;
};

/// A HeaderMatcher, compiled.
class CompiledHeader {
 public:
  explicit CompiledHeader(const HeaderMatcher& matcher, RegexPool* pool = nullptr);

  const std::string& name() const { return name_; }

  /// `value`: the value of the header of this name (see HeaderValue).
  bool matches(const std::optional<absl::string_view>& value) const;

 private:
  bool matches_text(absl::string_view value) const;

  std::string name_;
  std::variant<CompiledText, IntegerRange, PresenceMatcher> matcher_;
  bool invert_ = false;
  bool missing_is_empty_ = false;
};

class RouteTable {
 public:
  explicit RouteTable(const VirtualHost& host);

  /// The position in VirtualHost.routes of the route that takes the call; nullopt: there is none.
  std::optional<std::size_t> find(const PickArgs& args) const { return find(args, Silent{}); }

  /// Finds the route in the same way, and tells `sink` about routes that match the call's path, but
  /// not its headers or fraction.
  template <typename Sink>
  [[gnu::hot]] std::optional<std::size_t> find(const PickArgs& args, const Sink& sink) const;

 private:
  // A header matcher of a route. `place`: the number of its header name among the names in all
  // routes, for CallHeaders.
  struct PlacedHeader {
    std::size_t place = 0;
    CompiledHeader header;
  };

  // Routes with regular expressions that begin with the same text.
  struct Group {
    std::vector<std::uint32_t> positions;  ///< The routes, ascending.
    RegexSet set;                          ///< Their expressions, in the order of `positions`.
  };

  struct Entry {
    /// The route's path. Set when there is no index, or when the index cannot decide alone whether
    /// the path matches (regular expressions).
    std::optional<CompiledText> path;
    std::vector<PlacedHeader> headers;
    std::optional<std::uint32_t> fraction_per_million;
    /// Set in the first route of a group. The index has none of the group's other routes.
    std::unique_ptr<const Group> group;
  };

  // A call, with those of its headers that have been read.
  struct Asked;

  void build_index(const VirtualHost& host, RegexPool& pool);
  std::uint32_t group(std::vector<std::uint32_t> positions, const VirtualHost& host, double share);
  template <typename Sink>
  std::optional<std::size_t> find_in_index(Asked& call, const Sink& sink) const;
  template <typename Sink>
  bool matches(std::uint32_t position, Asked& call, const Sink& sink) const;
  template <typename Sink>
  [[gnu::hot]] bool others_match(std::uint32_t position, Asked& call, const Sink& sink) const;
  template <typename Sink>
  std::uint32_t first_of(const Group& group, Asked& call, const Sink& sink) const;

  std::vector<Entry> entries_;
  // The indexes, used when there are more than kFewRoutes routes: `in_any_case_` has the exact
  // paths and prefixes with ignore_case, `as_written_` all others. Null: no route has ignore_case.
  std::unique_ptr<const PathIndex> in_any_case_;
  PathIndex as_written_;
};

}  // namespace signalbox::lb
