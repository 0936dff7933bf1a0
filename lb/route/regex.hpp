// SPDX-License-Identifier: Apache-2.0
//
// The regular expressions of routes, which the parser has already allowed.
//
//   pattern, within the user's max_regex_memory ─▶ [compile_regex]  ─▶ RE2
//   patterns of a snapshot's routes             ─▶ [RegexPool]      ─▶ each text compiled once
//   pattern                                     ─▶ [literal_prefix] ─▶ other texts do not match
//   many patterns                               ─▶ [RegexSet]       ─▶ those that match, at once
//
// RE2 looks at each byte of a text once, so the time is linear in the text, whatever the pattern
// is.

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

/// The regular expressions of one snapshot's routes. Each text is compiled once. Matching may make
/// them grow by about 64 MiB together, or by 64 KiB each if that is more; a pattern that needs more
/// to compile may also grow more. For one thread.
class RegexPool {
 public:
  /// `patterns`: about how many distinct patterns will be asked for.
  explicit RegexPool(std::size_t patterns);

  /// The compiled pattern, as compile_regex() makes it.
  RegexPtr get(const std::string& pattern);

 private:
  std::int64_t memory_;
  absl::flat_hash_map<std::string, RegexPtr> compiled_;
};

/// The common beginning of all texts that the whole pattern matches, as far as it is easily seen.
/// Empty for patterns with alternatives.
std::string literal_prefix(absl::string_view pattern);

/// Many patterns that are matched as one, at the cost of one. Immutable; match() runs on any
/// thread, and allocates what RE2 needs.
class RegexSet {
 public:
  /// Precondition: every pattern compiles. The memory is 1 MiB for each pattern, and at most 64 MiB
  /// divided by `share` (but at least 1 MiB). The states that match() adds are part of it. `share`:
  /// the patterns of all sets divided by those of this set, because all sets have the 64 MiB
  /// together.
  explicit RegexSet(const std::vector<std::string>& patterns, double share = 1);

  /// The patterns that match the whole text, in ascending order. The result is valid until this
  /// thread calls match() again, on any set. nullopt: the patterns do not fit into the memory, so
  /// each must be tried alone.
  std::optional<absl::Span<const int>> match(absl::string_view text) const;

 private:
  re2::RE2::Set set_;
  bool fits_ = false;
};

}  // namespace signalbox::lb
