// SPDX-License-Identifier: Apache-2.0
//
// resource_name — the authority and the canonical spelling of a resource name.
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

/// The authority in a resource name, percent-decoded. nullopt: the name does not begin with
/// "xdstp:". Empty: the name begins with "xdstp:" and has no authority.
using AuthorityName = std::optional<std::string>;

struct ResourceName {
  AuthorityName authority;
  /// An xdstp: name with sorted context parameters and without a directive; any other name
  /// unchanged.
  std::string canonical;

  friend bool operator==(const ResourceName&, const ResourceName&) = default;
};

/// Parses a resource's name. INVALID_ARGUMENT if an xdstp: name is malformed or names another
/// resource type.
absl::StatusOr<ResourceName> parse_resource_name(const ResourceKey& key);

}  // namespace signalbox::xds
