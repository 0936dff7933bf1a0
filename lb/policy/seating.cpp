// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/seating.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

namespace signalbox::lb {

Seating::Seating(std::span<const absl::string_view> keys) {
  if (keys.empty()) return;
  constexpr std::size_t kGroup = 4;
  size_ = keys.size() + keys.size() / 8 + 1;  // Some stay free: the last ones find theirs soon.
  shifts_.resize(keys.size() / kGroup + 1);
  std::vector<std::vector<std::uint64_t>> groups(shifts_.size());
  for (const absl::string_view key : keys) {
    const std::uint64_t hash = hash_of(key);
    groups[below(hash, groups.size())].push_back(hash);
  }
  // The largest first, while most seats are free.
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, std::greater<>(), [&](std::size_t group) { return groups[group].size(); });

  std::vector<bool> is_taken(size_);
  std::vector<std::size_t> seats;
  const auto fits = [&](const std::vector<std::uint64_t>& hashes, Shift shift) {
    seats.clear();
    return std::ranges::all_of(hashes, [&](std::uint64_t hash) {
      seats.push_back(seat_with(hash, shift));
      const auto before = std::prev(seats.end());
      return !is_taken[*before] && std::find(seats.begin(), before, *before) == before;
    });
  };
  for (const std::size_t group : order) {
    for (Shift shift = 0; shift < std::numeric_limits<Shift>::max(); ++shift) {
      if (!fits(groups[group], shift)) continue;
      shifts_[group] = shift;
      for (const std::size_t seat : seats)
        is_taken[seat] = true;
      break;
    }
  }
}

}  // namespace signalbox::lb
