// SPDX-License-Identifier: Apache-2.0
//
// PathIndex — finds the routes with an exact path or a prefix that a call's path fulfils.
//
//   texts of routes ─▶ [PathIndex], a hash table of them ─▶ collect(path) ─▶ Candidates
//
//   call's path          looked for                     slot: by hash       record
//   "/s.B/m"        ┌─▶ "/s.B/"  as a prefix  ───────▶ │ tag │ route │ ───▶ the text, to compare
//                   └─▶ "/s.B/m" as the path  ───────▶ │ tag │ route │ ───▶ the text, to compare
//
// A look-up tries each beginning of the path that has the length of some route's prefix, and ends
// with a byte that ends some prefix. For gRPC's paths this is usually one beginning. Calls have
// different paths, so the data is seldom in the CPU's cache, and the time of a look-up is the time
// of its successive cache misses. To have few of them, the slot of the whole path is prefetched
// before the prefixes are looked up, and a slot with a single route holds that route's position, so
// that a call need not wait for the record.
//
// Immutable; collect() runs on any thread. A path is bytes; case means ASCII case.

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

/// The lists of candidate routes. A path with more nested prefixes than this has room for
/// allocates.
using Candidates = absl::InlinedVector<Positions, 16>;

class PathIndex {
 public:
  struct Entry {
    std::string text;
    bool is_exact = false;  ///< `text` is the whole path; else a prefix of it.
    std::uint32_t position = 0;
  };

  PathIndex() = default;

  /// `ignore_case`: whether the case of ASCII letters is ignored.
  PathIndex(std::vector<Entry> entries, bool ignore_case);

  /// Adds the routes with a text that the path fulfils.
  void collect(absl::string_view path, Candidates& found) const;

 private:
  // The place of one text, as a prefix or as a path.
  struct Slot {
    std::uint32_t tag = 0;     ///< The bits of the hash that do not choose the slot.
    std::uint32_t record = 0;  ///< The index in records_; 0: the slot is empty.
    std::uint32_t routes = 0;  ///< The number of routes.
    /// The position of a single route; several positions are in the record.
    std::uint32_t first = 0;
  };

  class Hashes;

  void insert(absl::Span<const Entry> alike);
  void add(absl::string_view text, std::uint64_t hash, Candidates& found) const;
  bool has_text(const Slot& slot, absl::string_view text) const;
  bool may_be_prefix(absl::string_view text) const;

  std::size_t slot_of(std::uint64_t hash) const { return hash & (slots_.size() - 1); }

  bool ignore_case_ = false;
  std::uint64_t seed_ = 0;
  /// 2^n slots. A text has the slot at its hash, or the next slot that was free.
  std::vector<Slot> slots_;
  /// A record has the size of a text, the positions of its routes if there are several, and the
  /// text.
  std::vector<std::uint32_t> records_;
  std::size_t longest_path_ = 0;
  std::vector<std::uint32_t> prefix_sizes_;  ///< Each size once, ascending.
  std::bitset<256> last_bytes_;              ///< The last bytes of prefixes.
};

}  // namespace signalbox::lb
