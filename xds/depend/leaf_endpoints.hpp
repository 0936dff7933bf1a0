// SPDX-License-Identifier: Apache-2.0
//
// leaf_endpoints — the endpoints of a leaf cluster, from EDS or from DNS.
//
//   EDS resource ─┐
//   DNS answer ───┴▶ [leaf_endpoints] ─▶ XdsConfig
//
// A locality that is equal to one of the previous Endpoints keeps its pointer. If nothing has
// changed, the whole Endpoints keeps its pointer (X3 of messages/xds_config.hpp).
//
// Source: gRFC A37 (A37-20, A37-25), A61 (all addresses of a name are one endpoint).

#pragma once

#include <vector>

#include "messages/endpoints.hpp"

namespace signalbox::xds {

/// Returns `received` with the unchanged localities of `before`, which may be null. Endpoints
/// without localities get one empty priority, because drops need a priority to apply.
EndpointsPtr endpoints_from_eds(const EndpointsPtr& received, const EndpointsPtr& before);

/// Returns one priority with one locality (without a name) and one endpoint. Precondition:
/// `addresses` is not empty.
EndpointsPtr endpoints_from_dns(const DnsName& name,
                                const std::vector<Address>& addresses,
                                const EndpointsPtr& before);

}  // namespace signalbox::xds
