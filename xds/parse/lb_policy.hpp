// SPDX-License-Identifier: Apache-2.0
//
// The LB policy of a leaf cluster: load_balancing_policy if it is set, else lb_policy.
//
//   xds/parse/cluster ─▶ [parse_lb_policy] ─▶ Cluster::lb_policy ─▶ lb/tree/cluster_tree
//
//   lb_policy ROUND_ROBIN     wrr_locality ─▶ round_robin
//             LEAST_REQUEST   wrr_locality ─▶ least_request
//             RANDOM          wrr_locality ─▶ random
//             RING_HASH       ring_hash
//             MAGLEV          maglev
//   load_balancing_policy     the first supported entry of its list
//
// common_lb_config.zone_aware_lb_config (for lb_policy) makes the wrr_locality zone-aware. The
// locality_lb_config of a policy's message puts a wrr_locality above the policy, zone-aware or not
// (Envoy). If there is one already, because the policy is the child of a WrrLocality, only
// fail_traffic_on_panic is taken from the message.
//
// A policy is supported if both the registry in the .cpp and ParseOptions::lb_policies have it. By
// default ParseOptions::lb_policies has all policies of the registry. The value ROUND_ROBIN of
// lb_policy is always supported. Two more kinds of policy are supported as a TypedStruct: policies
// that the user registered, which the user's parsers validate, and gRPC's ring_hash_experimental
// (A76).
//
// Source: gRFC A27 (lb_policy), A52 (load_balancing_policy), A42 and A76 (ring_hash), A48
// (least_request), A58 (weighted_round_robin), A62 (pick_first), A68 (random_subsetting); Envoy
// (random, maglev, zone-aware routing).

#pragma once

#include "messages/lb_config.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Returns the policy of the cluster. `top` is the cluster's field. Null only if an error was
/// added.
LbConfigPtr parse_lb_policy(const envoy::config::cluster::v3::Cluster& proto, const Field& top);

}  // namespace signalbox::xds
