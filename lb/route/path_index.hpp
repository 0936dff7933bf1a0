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
// A look-up tries each beginning of the path that is as long as some route's prefix and ends with
// the last byte of some prefix. For gRPC's paths that is usually one beginning. Calls have
// different paths, so the data is seldom in the CPU's cache, and a look-up takes as long as its
// successive cache misses. To have few of them, the slot of the whole path is prefetched before
// prefixes are looked up. And the slot of a text with one route has that route's position, so that
// the CPU can read the route while it still waits for the record, which confirms the text.
//
// Immutable; collect() runs on any thread. A path is bytes; case means ASCII case.

#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "messages/counting/striped.hpp"

namespace signalbox::lb {

/// The numbers of routes (Entry::position), ascending; never empty. RouteTable gives each route the
/// number mark_of(): the route's position in its virtual host, and one bit that says whether the
/// path is the route's only condition.
using Positions = absl::Span<const std::uint32_t>;

/// The routes with the call's path as their exact path, and for each prefix of it the routes with
/// that prefix. Allocates if it has more than 16 elements.
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

  /// Adds to `found` the routes with the exact path `path`, and those with each prefix of it.
  void collect(absl::string_view path, Candidates& found) const;

 private:
  // An entry of the hash table: one text, as a prefix or as a whole path.
  struct Slot {
    std::uint32_t tag = 0;     ///< Bits of the hash that are not in the slot's index.
    std::uint32_t record = 0;  ///< The index in records_; 0: the slot is empty.
    std::uint32_t routes = 0;  ///< How many routes have the text.
    /// The position of the text's route, if there is one; if there are several, the record has
    /// them.
    std::uint32_t first = 0;
  };

  // A cache line of the hash table. Its slots are filled from the first on.
  struct alignas(kCacheLine) Line {
    std::array<Slot, kCacheLine / sizeof(Slot)> slots;
  };

  class Hashes;

  void insert(absl::Span<const Entry> alike);
  void add(absl::string_view text, std::uint64_t hash, Candidates& found) const;
  bool has_text(const Slot& slot, absl::string_view text) const;
  bool may_be_prefix(absl::string_view text) const;

  std::size_t line_of(std::uint64_t hash) const { return hash & (lines_.size() - 1); }

  bool ignore_case_ = false;
  std::uint64_t seed_ = 0;
  /// A hash table of 2ⁿ lines, with linear probing: a text is in the line of its hash or, if that
  /// line was full, in the next line with an empty slot.
  std::vector<Line> lines_;
  /// For each text: its size, the positions of its routes if there are several, and the text
  /// itself.
  std::vector<std::uint32_t> records_;
  std::size_t longest_path_ = 0;
  std::vector<std::uint32_t> prefix_sizes_;  ///< Each size once, ascending.
  std::bitset<256> last_bytes_;  ///< The last byte of each prefix, in both cases if ignore_case_.
};

}  // namespace signalbox::lb
