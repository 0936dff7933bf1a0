// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/known_resources.hpp"

#include <utility>

namespace signalbox::xds {

void KnownResources::parse_with(const ParseOptions& options) {
  if (options == options_) return;
  options_ = options;
  types_.clear();
}

const ReceivedResource* KnownResources::find(ResourceType type, absl::string_view bytes) const {
  const auto known = types_.find(type);
  if (known == types_.end()) return nullptr;
  const auto found = known->second.places.find(bytes);
  return found == known->second.places.end() ? nullptr : &known->second.resources[found->second];
}

const ReceivedResource* KnownResources::find_named(ResourceType type,
                                                   absl::string_view name) const {
  const auto known = types_.find(type);
  if (known == types_.end()) return nullptr;
  const auto found = known->second.named.find(name);
  return found == known->second.named.end() ? nullptr : &known->second.resources[found->second];
}

RegexBudget::Patterns KnownResources::patterns(ResourceType type) const {
  const auto known = types_.find(type);
  return known == types_.end() ? RegexBudget::Patterns() : known->second.patterns;
}

void KnownResources::keep(const ResourcesReceived& received, RegexBudget::Patterns patterns) {
  OfType kept;
  kept.patterns = std::move(patterns);
  kept.resources.reserve(
      received.resources.size());  // Must not reallocate: `named` points into it.
  for (const ReceivedResource& resource : received.resources) {
    if (!resource.resource.ok() || resource.bytes == nullptr) continue;
    kept.places.emplace(*resource.bytes, kept.resources.size());
    kept.resources.push_back(resource);
    kept.named.emplace(kept.resources.back().name, kept.resources.size() - 1);
  }
  types_[received.type] = std::move(kept);
}

}  // namespace signalbox::xds
