// SPDX-License-Identifier: Apache-2.0
//
// ByteSource — reads bytes as a list of decisions. A fuzzer that changes one byte changes one
// decision.
//
//   bytes ─▶ below(3), below(256), one_of(names), … ─▶ a world, a list of actions
//
// When no bytes are left, each decision is the first choice, and is_empty() returns true.

#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace signalbox::fuzz {

class ByteSource {
 public:
  /// The bytes must outlive the ByteSource.
  ByteSource(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  bool is_empty() const { return left_ == 0; }

  /// In [0, bound); 0 < bound <= 256.
  std::size_t below(std::size_t bound) {
    if (left_ == 0) return 0;
    --left_;
    return *data_++ % bound;
  }

  bool flip() { return below(2) == 1; }

  template <typename List>
  const auto& one_of(const List& list) {
    return *std::next(std::begin(list), static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace signalbox::fuzz
