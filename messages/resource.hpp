// SPDX-License-Identifier: Apache-2.0
//
// A resource of any of the four types, its name, and the reasons to refuse it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// The order of the alternatives is that of ResourceType.
using Resource = std::variant<std::shared_ptr<const Listener>,
                              std::shared_ptr<const RouteConfig>,
                              std::shared_ptr<const Cluster>,
                              EndpointsPtr>;

/// Why a resource or a response was refused: three of the values of the label `reason` of
/// signalbox_config_rejected_total.
enum class RejectionReason : std::uint8_t { kParse, kSemantic, kLimit };
inline constexpr std::size_t kRejectionReasons = 3;

/// "parse", "semantic", "limit".
absl::string_view to_string(RejectionReason reason);

/// Why a resource was refused. If the resource has several faults, `reason` is the first of them in
/// this order: kLimit, kParse, kSemantic.
struct Rejection {
  RejectionReason reason = RejectionReason::kSemantic;
  std::string limit;  ///< The first limit that was hit ("max_routes"); empty: none.

  friend bool operator==(const Rejection&, const Rejection&) = default;
};

ResourceType type_of(const Resource& resource);

}  // namespace signalbox
