// SPDX-License-Identifier: Apache-2.0
//
// RegexBudget — compiles each pattern of one response at most once, and limits all patterns
// together.
//
//   parse_regex ─▶ [RegexBudget::judge] ─▶ valid, or the error of the pattern
//
// One pattern is cheap, but thousands are not: each takes some 10 µs to compile and 5 KiB to keep.
// A snapshot keeps the patterns of its routes. Its routes come from one response, so limits on a
// response also limit a snapshot.
//
// Invariant: no pattern is compiled once a limit on all patterns together is reached.

#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "messages/resource.hpp"
#include "xds/limits.hpp"

namespace signalbox::xds {

/// The error of a pattern; `what` is empty if the pattern is valid.
struct RegexVerdict {
  absl::string_view limit = {};  ///< The limit that is exceeded; empty: none is.
  std::string what = {};         ///< The error text, without the field.
};

/// The facts of a valid pattern.
struct RegexFacts {
  std::size_t cost = 0;  ///< The memory of the compiled pattern, in bytes.
  int groups = 0;        ///< The groups that a substitution can refer to.
};

class RegexBudget {
 public:
  /// Valid patterns. Keys: their texts.
  using Patterns = absl::flat_hash_map<std::string, RegexFacts>;

  /// Patterns that are in `known` are not compiled again.
  explicit RegexBudget(const Limits& limits, Patterns known = {})
      : limits_(limits), known_(std::move(known)) {}

  RegexVerdict judge(const std::string& pattern);

  /// The error of a substitution, or "". Precondition: the pattern was judged valid.
  std::string judge_substitution(const std::string& pattern, const std::string& substitution) const;

  /// Adds the patterns of a resource that was parsed before; all of them are valid. False: the
  /// budget has no room for one of them. Then the resource must be parsed again, which names the
  /// limit.
  [[nodiscard]] bool add_parsed(const Resource& resource);

  /// The valid patterns among those judged or added.
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
