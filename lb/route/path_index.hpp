// SPDX-License-Identifier: Apache-2.0
//
// PathIndex — which routes have an exact path or a prefix that a call's path fulfils.
//
//   texts of routes ─▶ [PathIndex], a tree of their common beginnings ─▶ collect(path) ─▶
//   Candidates
//
//   ""          prefix of 4          One walk down the tree passes every prefix that the path has,
//    └ "/s."    –                    and ends at the exact path: it looks at each byte of the path
//       ├ "A/"  prefix of 0, 2       once at most, whatever the number of routes.
//       └ "B/m" exact of 1, prefix of 3
//
// Immutable; collect() runs on any thread. A path is bytes: case is that of ASCII.

#pragma once

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
  // Places in one of the vectors below.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t size = 0;
  };

  struct Node {
    Range label;     ///< What it adds to its parent's text, in text_.
    Range children;  ///< In nodes_.
    Range prefixes;  ///< Routes with this text as prefix, in positions_.
    Range exacts;    ///< Routes with this text as path, in positions_.
  };

  class Builder;

  bool begins_with(absl::string_view path, const Range& label) const;
  const Node* child_of(const Node& node, char next) const;
  void add(const Range& range, Candidates& found) const;

  bool ignore_case_ = false;
  std::string text_;
  std::string first_bytes_;  ///< Of the label of each node: siblings are searched in here.
  std::vector<Node> nodes_;  ///< The root first, siblings side by side; empty without entries.
  std::vector<std::uint32_t> positions_;
};

}  // namespace signalbox::lb
