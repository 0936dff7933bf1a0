// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/known_resources.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace signalbox::xds {
namespace {

const ReceivedResource* find_in(const std::vector<ReceivedResource>& resources,
                                const absl::flat_hash_map<absl::string_view, std::size_t>& places,
                                absl::string_view key) {
  const auto found = places.find(key);
  return found == places.end() ? nullptr : &resources[found->second];
}

}  // namespace

void KnownResources::parse_with(const ParseOptions& options) {
  if (options == options_) return;
  options_ = options;
  types_.clear();
}

const ReceivedResource* KnownResources::find(ResourceType type, absl::string_view bytes) const {
  const auto known = types_.find(type);
  if (known == types_.end()) return nullptr;
  return find_in(known->second.resources, known->second.places, bytes);
}

const ReceivedResource* KnownResources::find_named(ResourceType type,
                                                   absl::string_view name) const {
  const auto known = types_.find(type);
  if (known == types_.end()) return nullptr;
  return find_in(known->second.resources, known->second.named, name);
}

RegexBudget::Patterns KnownResources::patterns(ResourceType type) const {
  const auto known = types_.find(type);
  return known == types_.end() ? RegexBudget::Patterns() : known->second.patterns;
}

void KnownResources::keep(const ResourcesReceived& received, RegexBudget::Patterns patterns) {
  OfType kept;
  kept.patterns = std::move(patterns);
  // Must not reallocate: `named` has views into it.
  kept.resources.reserve(received.resources.size());
  for (const ReceivedResource& resource : received.resources) {
    if (!resource.resource.ok() || resource.bytes == nullptr) continue;
    kept.places.emplace(*resource.bytes, kept.resources.size());
    kept.resources.push_back(resource);
    kept.named.emplace(kept.resources.back().name, kept.resources.size() - 1);
  }
  types_[received.type] = std::move(kept);
}

}  // namespace signalbox::xds
