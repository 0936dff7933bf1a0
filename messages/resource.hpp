// SPDX-License-Identifier: Apache-2.0
//
// A resource of any of the four types, and how it is named.

#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"

#include "messages/cluster.hpp"
#include "messages/endpoints.hpp"
#include "messages/listener.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

enum class ResourceType : std::uint8_t { kListener, kRouteConfig, kCluster, kEndpoints };

/// "LDS", "RDS", "CDS", "EDS".
absl::string_view to_string(ResourceType type);
std::ostream& operator<<(std::ostream& out, ResourceType type);

struct ResourceKey {
  ResourceType type = ResourceType::kListener;
  std::string name;

  friend bool operator==(const ResourceKey&, const ResourceKey&) = default;
  friend auto operator<=>(const ResourceKey&, const ResourceKey&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const ResourceKey& key) {
    return H::combine(std::move(state), key.type, key.name);
  }
};

/// The alternatives stand in the order of ResourceType.
using Resource = std::variant<std::shared_ptr<const Listener>,
                              std::shared_ptr<const RouteConfig>,
                              std::shared_ptr<const Cluster>,
                              EndpointsPtr>;

/// Which of the four it is.
ResourceType type_of(const Resource& resource);

}  // namespace signalbox
