// SPDX-License-Identifier: Apache-2.0
//
// leaf_endpoints — the endpoints of a leaf cluster, from wherever they come.
//
//   EDS resource ─┐
//   DNS answer ───┴▶ [leaf_endpoints] ─▶ XdsConfig
//
// What did not change since the generation before keeps its pointer: each locality by itself, and
// the whole where nothing changed at all (X3 of messages/xds_config.hpp).
//
// Source: gRFC A37 (A37-20, A37-25), A61 (all addresses of a name are one endpoint).

#pragma once

#include <vector>

#include "messages/endpoints.hpp"

namespace signalbox::xds {

/// `before` may be null. Without localities there is one empty priority, so that drops apply.
EndpointsPtr endpoints_from_eds(const EndpointsPtr& received, const EndpointsPtr& before);

/// One priority, one locality without a name, one endpoint. Precondition: there is an address.
EndpointsPtr endpoints_from_dns(const DnsName& name,
                                const std::vector<Address>& addresses,
                                const EndpointsPtr& before);

}  // namespace signalbox::xds
