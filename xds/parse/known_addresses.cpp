// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/known_addresses.hpp"

#include <algorithm>
#include <utility>

#include "messages/each_address.hpp"

namespace signalbox::xds {
namespace {

// Up to so many misses, a list of another order costs less than a hash table of all addresses.
constexpr std::size_t kFewMisses = 8;

}  // namespace

KnownAddresses::KnownAddresses(const Endpoints* last) {
  if (last == nullptr) return;
  each_address(*last, [this](const Address& address, std::size_t /*priority*/) {
    list_.push_back(&address);
  });
}

Address KnownAddresses::address(std::string text) {
  const auto place = place_of(text);
  if (!place.has_value()) return Address(std::move(text));
  next_ = *place + 1;
  return *list_[*place];
}

// A single address that was added, removed or replaced shifts the following ones by at most one. So
// they are found without the hash table.
std::optional<std::size_t> KnownAddresses::place_of(absl::string_view text) {
  for (std::size_t place = next_; place < std::min(next_ + 2, list_.size()); ++place) {
    if (list_[place]->str() == text) return place;
  }
  if (list_.empty() || ++misses_ <= kFewMisses) return std::nullopt;
  if (places_.empty()) {
    places_.reserve(list_.size());
    for (std::size_t place = 0; place < list_.size(); ++place)
      places_.emplace(list_[place]->str(), place);
  }
  const auto found = places_.find(text);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

}  // namespace signalbox::xds
