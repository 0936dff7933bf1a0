// SPDX-License-Identifier: Apache-2.0
//
// RegexBudget — the regular expressions of one response: each text is compiled once, and all of
// them together stay within limits.
//
//   parse_regex ─▶ [RegexBudget::judge] ─▶ fine, or what is wrong with the pattern
//
// A pattern is cheap, and thousands of them are not: each takes some 10 µs to compile and 5 KiB to
// keep, and a snapshot keeps those of its routes. A snapshot's routes are of one response, so what
// bounds a response bounds a snapshot.
//
// Invariant: no pattern is compiled once a limit is reached.

#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "messages/resource.hpp"
#include "xds/limits.hpp"

namespace signalbox::xds {

/// What is wrong with a pattern; `what` is empty if nothing is.
struct RegexVerdict {
  absl::string_view limit = {};  ///< Its name, where the pattern goes beyond one.
  std::string what = {};         ///< "must …, found …".
};

/// What is known of a valid pattern.
struct RegexFacts {
  std::size_t cost = 0;  ///< In bytes, compiled.
  int groups = 0;        ///< That a substitution can refer to.
};

class RegexBudget {
 public:
  /// Valid patterns, by their texts.
  using Patterns = absl::flat_hash_map<std::string, RegexFacts>;

  /// Patterns that are in `known` are not compiled again.
  explicit RegexBudget(const Limits& limits, Patterns known = {})
      : limits_(limits), known_(std::move(known)) {}

  RegexVerdict judge(const std::string& pattern);

  /// Whether the substitution fits a pattern that was judged valid: what is wrong, or "".
  std::string judge_substitution(const std::string& pattern, const std::string& substitution) const;

  /// The patterns of a resource that was parsed before, which are valid.
  void add_parsed(const Resource& resource);

  /// The valid ones of the patterns that were judged or added.
  Patterns take_patterns() { return std::move(valid_); }

 private:
  RegexVerdict judge_alone(const std::string& pattern, RegexFacts& facts) const;
  RegexVerdict judge_sum(const std::string& pattern) const;
  void count(const std::string& pattern, const RegexFacts& facts);

  const Limits limits_;
  const Patterns known_;
  Patterns valid_;
  absl::flat_hash_map<std::string, RegexVerdict> refused_;
  std::size_t count_ = 0;
  std::size_t length_ = 0;
  std::size_t memory_ = 0;
};

}  // namespace signalbox::xds
