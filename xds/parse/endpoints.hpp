// SPDX-License-Identifier: Apache-2.0
//
// EDS: a serialised envoy.config.endpoint.v3.ClusterLoadAssignment becomes Endpoints.
//
//   bytes ─▶ [parse_endpoints] ─▶ Endpoints ─▶ dependency manager
//
//   locality without weight     left out, without validation                       (A27)
//   endpoint neither HEALTHY, UNKNOWN nor DRAINING     not in Priority::localities (A55)
//     DEGRADED                  into Priority::degraded                            (ENV-9)
//     UNHEALTHY, TIMEOUT        into Priority::unhealthy                           (ENV-9)
//     invalid                   left out without an error, if it has one of these 3 states
//     DRAINING                  left out without ParseOptions::session_affinity        (A55-40)
//     any other health          left out
//   priorities                  those with a weighted locality, without gaps       (A27)
//
//   health_check_config         Endpoints::probe_exceptions
//   metadata                    envoy.lb hash_key (A76); the address of a proxy (A86)
//
// Source: gRFC A27 (EDS), A55 (health), A61 (several addresses), A76, A81 (hostname), A86; Envoy's
// aggregate cluster (overprovisioning).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/known_resources.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

/// Parses and checks a resource. The result's name is empty if the bytes have no readable name.
/// `known`: the resources of the last response, of which the cluster's addresses are used again;
/// null: none.
ReceivedResource parse_endpoints(absl::string_view bytes,
                                 const ParseOptions& options = {},
                                 const KnownResources* known = nullptr);

}  // namespace signalbox::xds
