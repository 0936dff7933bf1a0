// SPDX-License-Identifier: Apache-2.0
//
// resource_name — whose a resource is, by its name, and the one spelling that we know it by.
//
//   orders                                                    no authority: the bootstrap's servers
//   xdstp://east/envoy.config.listener.v3.Listener/orders?b=2&a=1
//           ▲ authority     ▲ its type             ▲ id   ▲ context parameters, in any order
//
// Source: gRFC A47; xRFC TP1. Directives (after a #) are not part of the name.

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "messages/resource.hpp"

namespace signalbox::xds {

/// Nothing: of names that are not xdstp:. Empty: of xdstp: names without one.
using AuthorityName = std::optional<std::string>;

struct ResourceName {
  AuthorityName authority;
  /// As it was written, but for the context parameters, which are in order.
  std::string canonical;

  friend bool operator==(const ResourceName&, const ResourceName&) = default;
};

/// INVALID_ARGUMENT where an xdstp: name is none of its type.
absl::StatusOr<ResourceName> parse_resource_name(const ResourceKey& key);

}  // namespace signalbox::xds
