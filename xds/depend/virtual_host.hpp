// SPDX-License-Identifier: Apache-2.0
//
// find_virtual_host — which virtual host of a route configuration serves a target (gRFC A27).
//
// The most specific domain wins: an exact one, then the longest `*suffix`, then the longest
// `prefix*`, then `*`. Case does not matter; among equals the first in the configuration wins.

#pragma once

#include "absl/strings/string_view.h"

#include "messages/route_config.hpp"

namespace signalbox::xds {

/// Whether a virtual host with this domain may serve a target of this authority.
bool domain_matches(absl::string_view domain, absl::string_view authority);

/// A member of `config`, or nullptr where no domain matches.
const VirtualHost* find_virtual_host(const RouteConfig& config, absl::string_view authority);

}  // namespace signalbox::xds
