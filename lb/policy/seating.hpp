// SPDX-License-Identifier: Apache-2.0
//
// Seating — a place of its own for each of many texts, known from the text alone.
//
//   keys ─▶ [Seating] ─▶ seat_of(key): where its owner sits
//
// A perfect hash (hash and displace): the keys are dealt into groups of about four, and each group
// has a number that, mixed into their hashes, sends them to seats of their own. What a search reads
// beside the seat itself is that one number: half a kilobyte for a thousand keys, which stays in a
// processor's own cache. Immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

class Seating {
 public:
  /// Nobody sits anywhere.
  Seating() = default;

  /// Expected O(keys). Keys that are equal have one seat; so may others, in the rarest of cases:
  /// who sits where is to be checked by the key itself.
  explicit Seating(std::span<const absl::string_view> keys);

  /// How many seats there are, empty ones among them.
  std::size_t size() const { return size_; }

  /// Where the owner of this key sits, below size(); for a key that was not given, anybody's seat.
  /// Precondition: size() > 0.
  std::size_t seat_of(absl::string_view key) const {
    const std::uint64_t hash = hash_of(key);
    return seat_with(hash, shifts_[below(hash, shifts_.size())]);
  }

 private:
  using Shift = std::uint16_t;

  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;

  // Here, and short: a call would find nothing of a library in the processor's caches.
  static std::uint64_t hash_of(absl::string_view key) {
    std::uint64_t hash = key.size() * kOdd;
    const auto mix = [&hash](std::uint64_t word) {
      hash = (hash ^ word) * kOdd;
      hash ^= hash >> 32U;
    };
    std::uint64_t word = 0;
    for (; key.size() >= sizeof(word); key.remove_prefix(sizeof(word))) {
      std::memcpy(&word, key.data(), sizeof(word));
      mix(word);
    }
    word = 0;
    for (const char letter : key)
      word = word << 8U | static_cast<unsigned char>(letter);
    mix(word);
    return hash * kOdd;
  }

  static std::size_t below(std::uint64_t number, std::size_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>((static_cast<Wide>(number) * bound) >> 64U);
  }

  std::size_t seat_with(std::uint64_t hash, Shift shift) const {
    std::uint64_t mixed = (hash ^ shift) * 0xd6e8feb86659fd93ULL;
    mixed = (mixed ^ (mixed >> 32U)) * kOdd;
    return below(mixed, size_);
  }

  std::size_t size_ = 0;
  std::vector<Shift> shifts_;  // By group.
};

}  // namespace signalbox::lb
