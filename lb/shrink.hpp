// SPDX-License-Identifier: Apache-2.0
//
// shrink — returns the memory of a hash table that was large once and is small now.
//
//   table of 100,000 entries ─▶ erase all but two ─▶ shrink_if_sparse ─▶ table of two
//
// A hash table of abseil keeps its memory when entries are erased. The subchannel map of a cluster
// that once had 100,000 endpoints would keep megabytes for as long as the map lives.

#pragma once

#include <cstddef>

namespace signalbox::lb {

/// Call it after entries were erased. It rebuilds the table only if the table is large and less
/// than an eighth full, so a call is cheap on average. It may make references to entries invalid.
template <typename Table>
void shrink_if_sparse(Table& table) {
  constexpr std::size_t kSmall = 1'024;
  constexpr std::size_t kSparse = 8;
  if (table.capacity() > kSmall && table.size() < table.capacity() / kSparse) table.rehash(0);
}

}  // namespace signalbox::lb
