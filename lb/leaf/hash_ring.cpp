// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/hash_ring.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/xx_hash.hpp"

namespace signalbox::lb {
namespace {

// The number of points on the whole ring, before rounding. Envoy and gRPC compute it with doubles
// in this order of operations, and another rounding would give another ring.
double points_wanted(const std::vector<HashRing::Item>& items,
                     double sum,
                     const HashRing::Sizes& sizes) {
  const auto lightest = std::ranges::min_element(items, {}, &HashRing::Item::weight);
  const double share = static_cast<double>(lightest->weight) / sum;
  return std::min(std::ceil(share * static_cast<double>(sizes.min)) / share,
                  static_cast<double>(sizes.max));
}

}  // namespace

HashRing::HashRing(const std::vector<Item>& items, Sizes sizes) {
  if (items.empty()) return;
  double sum = 0;
  for (const Item& item : items)
    sum += static_cast<double>(item.weight);
  const double wanted = points_wanted(items, sum, sizes);

  std::vector<std::pair<std::uint64_t, std::uint32_t>> points;
  points.reserve(static_cast<std::size_t>(std::ceil(wanted)));
  // How many points the ring should have after this item; the fraction carries over.
  double target = 0;
  std::string text;
  for (std::uint32_t at = 0; at < items.size(); ++at) {
    target += wanted * (static_cast<double>(items[at].weight) / sum);
    text.assign(items[at].key.data(), items[at].key.size());
    text.push_back('_');
    const std::size_t prefix = text.size();
    for (std::uint64_t number = 0; static_cast<double>(points.size()) < target; ++number) {
      text.resize(prefix);
      absl::StrAppend(&text, number);
      points.emplace_back(xx_hash(text), at);
    }
  }
  std::ranges::sort(points);

  hashes_.reserve(points.size());
  items_.reserve(points.size());
  present_.resize(items.size());
  for (const auto& [hash, item] : points) {
    hashes_.push_back(hash);
    items_.push_back(item);
    present_[item] = true;
  }
}

std::size_t HashRing::find(std::uint64_t hash) const {
  const auto found = std::ranges::lower_bound(hashes_, hash);
  return found == hashes_.end() ? 0 : static_cast<std::size_t>(found - hashes_.begin());
}

}  // namespace signalbox::lb
