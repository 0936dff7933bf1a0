// SPDX-License-Identifier: Apache-2.0
//
// RouteTable — which route of a virtual host takes a call: the first that matches, in order.
//
//   VirtualHost ─▶ [RouteTable], compiled once ─▶ find(path, headers) ─▶ position of the route
//
// A route matches when its path, all of its headers and its fraction do. Immutable; find() runs on
// any thread and allocates nothing, unless several values of one header must be joined, or a
// regular expression is met for the first time.
//
// Rules that surprise (gRFC A28, A63, and gRPC's practice)
//   – Several values of a header are compared as one text, joined by ",".
//   – A header that is absent matches nothing but a presence matcher, inverted or not.
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

#include "messages/pick.hpp"
#include "messages/route_config.hpp"

namespace signalbox::lb {

/// A TextMatcher, ready to compare. A regular expression that does not compile within 64 MiB
/// matches nothing.
class CompiledText {
 public:
  explicit CompiledText(const TextMatcher& matcher);

  bool matches(absl::string_view text) const;

 private:
  TextMatcher matcher_;
  std::unique_ptr<const re2::RE2> regex_;
};

/// A HeaderMatcher, ready to compare.
class CompiledHeader {
 public:
  explicit CompiledHeader(const HeaderMatcher& matcher);

  bool matches(const HeaderSource* headers) const;

 private:
  bool matches_value(absl::string_view value) const;

  std::string name_;
  std::variant<CompiledText, IntegerRange, PresenceMatcher> matcher_;
  bool invert_ = false;
};

class RouteTable {
 public:
  explicit RouteTable(const VirtualHost& host);

  /// The position in VirtualHost.routes of the route that takes the call; nullopt: there is none.
  std::optional<std::size_t> find(const PickArgs& args) const;

 private:
  struct Entry {
    CompiledText path;
    std::vector<CompiledHeader> headers;
    std::optional<std::uint32_t> fraction_per_million;
  };

  std::vector<Entry> entries_;
};

}  // namespace signalbox::lb
