// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions of routes. The parser has accepted all of them before.
//
//   pattern, within the user's max_regex_memory ─▶ [compile_regex]  ─▶ RE2
//   patterns of a snapshot's routes             ─▶ [RegexPool]      ─▶ each text compiled once
//   pattern                                     ─▶ [literal_prefix] ─▶ how every match begins
//   many patterns                               ─▶ [RegexSet]       ─▶ those that match, at once
//
// RE2 does not backtrack, so the time of a match grows in proportion to the text, whatever the
// pattern.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "re2/re2.h"
#include "re2/set.h"

namespace signalbox::lb {

using RegexPtr = std::shared_ptr<const re2::RE2>;

/// Compiles the pattern with as much memory as it needs, up to 64 MiB. Never null; check ok().
RegexPtr compile_regex(const std::string& pattern);

/// Compiles regular expressions of one snapshot's routes, each text once. The matchers have one
/// pool, the hash policies another. The memory of a pool's expressions, which grows as they match,
/// is limited to about 64 MiB together (or to 64 KiB each if that is more). A pattern that needs
/// more to compile gets more. For one thread.
class RegexPool {
 public:
  /// `patterns`: about how many different patterns get() will be called for.
  explicit RegexPool(std::size_t patterns);

  /// The compiled pattern. Never null; check ok().
  RegexPtr get(const std::string& pattern);

 private:
  std::int64_t memory_;
  absl::flat_hash_map<std::string, RegexPtr> compiled_;
};

/// The literal characters with which the pattern begins. Every text that matches the pattern as a
/// whole begins with them too. Empty for patterns with alternatives.
std::string literal_prefix(absl::string_view pattern);

/// Matches a text against many patterns in one pass. Immutable; match() runs on any thread, and may
/// allocate.
class RegexSet {
 public:
  /// Precondition: every pattern compiles. The memory, which includes states that match() adds, is
  /// 1 MiB for each pattern, but at most 64 MiB / `share`, and at least 1 MiB. `share`: the number
  /// of patterns of all paths in the snapshot, divided by the number of patterns in this set. So
  /// the sets of a snapshot share about 64 MiB.
  explicit RegexSet(const std::vector<std::string>& patterns, double share = 1);

  /// The indices of the patterns that match the whole text, ascending. Valid until this thread
  /// calls match() again, on any set. nullopt: the memory does not suffice, so the caller must try
  /// each pattern.
  std::optional<absl::Span<const int>> match(absl::string_view text) const;

 private:
  re2::RE2::Set set_;
  bool fits_ = false;
};

}  // namespace signalbox::lb
