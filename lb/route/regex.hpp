// SPDX-License-Identifier: Apache-2.0
//
// The regular expressions of routes, which the parser has allowed already.
//
//   pattern, within the user's max_regex_memory ─▶ [compile_regex]  ─▶ RE2
//   patterns of a snapshot's routes             ─▶ [RegexPool]      ─▶ each text compiled once
//   pattern                                     ─▶ [literal_prefix] ─▶ who begins otherwise is out
//   many patterns                               ─▶ [RegexSet]       ─▶ those that match, at once
//
// RE2 looks at each byte of a text once, whatever the pattern: no pattern and no text explode.

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

/// With as much memory as the pattern needs, up to 64 MiB. Never null; check ok().
RegexPtr compile_regex(const std::string& pattern);

/// The regular expressions of one snapshot's routes. Each text is compiled once, and what matching
/// may make them grow by is 64 MiB together, or 64 KiB each. For one thread.
class RegexPool {
 public:
  /// About so many different patterns will be asked for.
  explicit RegexPool(std::size_t patterns);

  /// As compile_regex().
  RegexPtr get(const std::string& pattern);

 private:
  std::int64_t memory_;
  absl::flat_hash_map<std::string, RegexPtr> compiled_;
};

/// What every text that the whole pattern matches begins with, as far as it is easily seen; of
/// patterns with alternatives nothing is.
std::string literal_prefix(absl::string_view pattern);

/// Many patterns, matched as one: a text costs what it costs one of them. Immutable; match() runs
/// on any thread, and allocates what RE2 needs.
class RegexSet {
 public:
  /// Every pattern compiles. Together they may take 1 MiB for each of them and 64 MiB in all,
  /// divided by `share`: so many sets share these. What match() learns of texts is within them.
  explicit RegexSet(const std::vector<std::string>& patterns, double share = 1);

  /// Which patterns match the whole text, in ascending order; valid until this thread's next call,
  /// of any set. nullopt: they do not fit into the memory, so each must be tried alone.
  std::optional<absl::Span<const int>> match(absl::string_view text) const;

 private:
  re2::RE2::Set set_;
  bool fits_ = false;
};

}  // namespace signalbox::lb
