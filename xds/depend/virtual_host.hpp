// SPDX-License-Identifier: Apache-2.0
//
// find_virtual_host — finds the virtual host of a route configuration for a target (gRFC A27).
//
// The most specific domain wins: an exact domain, then the longest `*suffix`, then the longest
// `prefix*`, then `*`. Case does not matter. If domains are equally specific, the first in the
// configuration wins.

#pragma once

#include "absl/strings/string_view.h"

#include "messages/route_config.hpp"

namespace signalbox::xds {

/// Whether a virtual host with this domain may serve a target of this authority.
bool domain_matches(absl::string_view domain, absl::string_view authority);

/// The best virtual host, a pointer into `config`; nullptr if no domain matches.
const VirtualHost* find_virtual_host(const RouteConfig& config, absl::string_view authority);

}  // namespace signalbox::xds
