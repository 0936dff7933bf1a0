// SPDX-License-Identifier: Apache-2.0
//
// PathIndex — which routes have an exact path or a prefix that a call's path fulfils.
//
//   texts of routes ─▶ [PathIndex], a hash table of them ─▶ collect(path) ─▶ Candidates
//
//   call's path          looked for                     slot: by hash       record
//   "/s.B/m"        ┌─▶ "/s.B/"  as a prefix  ───────▶ │ tag │ route │ ───▶ the text, to compare
//                   └─▶ "/s.B/m" as the path  ───────▶ │ tag │ route │ ───▶ the text, to compare
//
// Looked for are the beginnings that are as long as some prefix and end with the last byte of one:
// of gRPC's paths that is one, as a rule. Each call has another path, and caches that have
// forgotten it: its time is that of the places in memory that must be waited for, one after the
// other. Slots are looked at side by side, and who has the route in his hand need not wait for the
// record.
//
// Immutable; collect() runs on any thread. A path is bytes: case is that of ASCII.

#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace signalbox::lb {

/// Positions of routes in ascending order; never empty.
using Positions = absl::Span<const std::uint32_t>;

/// Lists of routes that are left to look at. More than it has room for is a path with that many
/// prefixes, one in the other, and allocates.
using Candidates = absl::InlinedVector<Positions, 16>;

class PathIndex {
 public:
  struct Entry {
    std::string text;
    bool is_exact = false;  ///< The whole path; else a prefix of it.
    std::uint32_t position = 0;
  };

  PathIndex() = default;

  /// `ignore_case`: of ASCII letters.
  PathIndex(std::vector<Entry> entries, bool ignore_case);

  /// Adds the routes whose text the path fulfils.
  void collect(absl::string_view path, Candidates& found) const;

 private:
  // A text as prefix, or as path: whose it is.
  struct Slot {
    std::uint32_t tag = 0;     ///< Of the hash, what has no part in the slot's place.
    std::uint32_t record = 0;  ///< Its place in records_; 0: the slot is empty.
    std::uint32_t routes = 0;  ///< How many.
    std::uint32_t first = 0;   ///< Of one, here is its position; of more, they are in the record.
  };

  class Hashes;

  void insert(absl::Span<const Entry> alike);
  void add(absl::string_view text, std::uint64_t hash, Candidates& found) const;
  bool has_text(const Slot& slot, absl::string_view text) const;
  bool may_be_prefix(absl::string_view text) const;

  std::size_t slot_of(std::uint64_t hash) const { return hash & (slots_.size() - 1); }

  bool ignore_case_ = false;
  std::uint64_t seed_ = 0;
  std::vector<Slot> slots_;             ///< 2^n; a text is in the first free one after its hash.
  std::vector<std::uint32_t> records_;  ///< Each: how long its text is, positions, the text.
  std::size_t longest_path_ = 0;
  std::vector<std::uint32_t> prefix_sizes_;  ///< Each once, ascending.
  std::bitset<256> last_bytes_;              ///< Of prefixes.
};

}  // namespace signalbox::lb
