// SPDX-License-Identifier: Apache-2.0
//
// Parses the configurations of LB policies without child policies.
//
//   registry of lb_policy ─▶ [parse_<policy>] ─▶ LbConfig
//
// `field` is the configuration. If an error was added, the returned value must not be used, and may
// be null.
//
// Source: gRFC A42 and A76 (ring_hash), A48 (least_request), A58 and A114 (weighted_round_robin),
// A62 (pick_first), A100 (slow start); Envoy (random, maglev, slow start, zone-aware routing).

#pragma once

#include "messages/lb_config.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "xds/parse/extension.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

LbConfigPtr parse_round_robin(const Extension& extension, const Field& field);
LbConfigPtr parse_pick_first(const Extension& extension, const Field& field);
LbConfigPtr parse_ring_hash(const Extension& extension, const Field& field);
LbConfigPtr parse_least_request(const Extension& extension, const Field& field);
LbConfigPtr parse_weighted_round_robin(const Extension& extension, const Field& field);
LbConfigPtr parse_random(const Extension& extension, const Field& field);
LbConfigPtr parse_maglev(const Extension& extension, const Field& field);

/// gRPC's own form of ring_hash, a JSON structure: {"minRingSize": …, "maxRingSize": …,
/// "requestHashHeader": …}. Only this form can name a header (A76).
LbConfigPtr parse_ring_hash_structure(const Extension& extension, const Field& field);

/// Cluster.round_robin_lb_config, ring_hash_lb_config, least_request_lb_config and
/// maglev_lb_config, which belong to the enum lb_policy.
LbConfigPtr parse_round_robin(const envoy::config::cluster::v3::Cluster::RoundRobinLbConfig& proto,
                              const Field& field);
LbConfigPtr parse_ring_hash(const envoy::config::cluster::v3::Cluster::RingHashLbConfig& proto,
                            const Field& field);
LbConfigPtr parse_least_request(
    const envoy::config::cluster::v3::Cluster::LeastRequestLbConfig& proto, const Field& field);
LbConfigPtr parse_maglev(const envoy::config::cluster::v3::Cluster::MaglevLbConfig& proto,
                         const Field& field);

/// The choice of a locality by the enum lb_policy, without a child: by weights, or as
/// common_lb_config.zone_aware_lb_config says. `field`: common_lb_config.
WrrLocalityConfig parse_localities(const envoy::config::cluster::v3::Cluster::CommonLbConfig& proto,
                                   const Field& field);

}  // namespace signalbox::xds
