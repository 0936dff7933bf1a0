// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/policies.hpp"

#include "signalbox/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/maglev/v3/maglev.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/random/v3/random.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::sim {
namespace {

namespace known = envoy::extensions::load_balancing_policies;
using envoy::config::cluster::v3::LoadBalancingPolicy;

template <typename Message>
void add(LoadBalancingPolicy& policy, const Message& message) {
  auto* extension = policy.add_policies()->mutable_typed_extension_config();
  extension->set_name("policy");
  extension->mutable_typed_config()->set_type_url(xds::type_url_of<Message>());
  extension->mutable_typed_config()->set_value(message.SerializeAsString());
}

template <typename Message>
void write_default(LoadBalancingPolicy& policy) {
  add(policy, Message());
}

void write_shuffled(LoadBalancingPolicy& policy) {
  known::pick_first::v3::PickFirst message;
  message.set_shuffle_address_list(true);
  add(policy, message);
}

// A small ring is built quickly, and is large enough for the most hosts that a leaf has (kHosts).
void write_ring_hash(LoadBalancingPolicy& policy) {
  known::ring_hash::v3::RingHash message;
  message.mutable_minimum_ring_size()->set_value(64);
  message.mutable_maximum_ring_size()->set_value(128);
  add(policy, message);
}

void write_maglev(LoadBalancingPolicy& policy) {
  known::maglev::v3::Maglev message;
  message.mutable_table_size()->set_value(251);
  add(policy, message);
}

// The subset is larger than any simulated cluster, so every host is in use.
void write_subsetting(LoadBalancingPolicy& policy) {
  known::random_subsetting::v3::RandomSubsetting message;
  message.mutable_subset_size()->set_value(1'000);
  add(*message.mutable_child_policy(), known::round_robin::v3::RoundRobin());
  add(policy, message);
}

template <typename Message>
void write_by_locality(LoadBalancingPolicy& policy) {
  known::wrr_locality::v3::WrrLocality message;
  add(*message.mutable_endpoint_picking_policy(), Message());
  add(policy, message);
}

using RoundRobin = known::round_robin::v3::RoundRobin;
using PickFirst = known::pick_first::v3::PickFirst;
using LeastRequest = known::least_request::v3::LeastRequest;
using Weighted = known::client_side_weighted_round_robin::v3::ClientSideWeightedRoundRobin;
using Random = known::random::v3::Random;

// Sets slow start (A100). A new host begins with half of its weight, because promises.cpp needs
// picks of every host.
template <typename Message>
void begin_slowly(Message& message) {
  auto& slow = *message.mutable_slow_start_config();
  slow.mutable_slow_start_window()->set_seconds(40);
  slow.mutable_aggression()->set_default_value(1.5);
  slow.mutable_min_weight_percent()->set_value(50);
}

// Writes the policy below wrr_locality, with slow start (A100). Once the slow-start window has
// passed, the policy acts as it does without slow start.
template <typename Message>
void write_slow(LoadBalancingPolicy& policy) {
  known::wrr_locality::v3::WrrLocality message;
  Message child;
  begin_slowly(child);
  add(*message.mutable_endpoint_picking_policy(), child);
  add(policy, message);
}

// Weights are taken soon, and expire while a fault that stops reports may still last.
void set_periods(Weighted& message) {
  message.mutable_blackout_period()->set_seconds(2);
  message.mutable_weight_expiration_period()->set_seconds(12);
}

// Writes weighted_round_robin below wrr_locality. Endpoints report their load on streams (A58).
void write_weighted(LoadBalancingPolicy& policy) {
  known::wrr_locality::v3::WrrLocality message;
  Weighted weighted;
  weighted.mutable_enable_oob_load_report()->set_value(true);
  weighted.mutable_oob_reporting_period()->set_seconds(4);
  set_periods(weighted);
  add(*message.mutable_endpoint_picking_policy(), weighted);
  add(policy, message);
}

// As write_weighted(), but endpoints report their load with responses (A58), and start slowly.
void write_weighted_by_calls(LoadBalancingPolicy& policy) {
  known::wrr_locality::v3::WrrLocality message;
  Weighted weighted;
  set_periods(weighted);
  begin_slowly(weighted);
  add(*message.mutable_endpoint_picking_policy(), weighted);
  add(policy, message);
}

// --- zone-aware routing, biases -----------------------------------------------

constexpr ZoneRule kZonesByCluster{.percent = 100, .fewest = 2};
constexpr ZoneRule kZonesOfMost{.percent = 60, .fewest = 1};
constexpr ZoneRule kZonesOfLarge{.percent = 100, .fewest = 4};
constexpr double kNoBias = 0;
constexpr double kStrongBias = 3;

// The field of the policy's own message, which places the policy below a choice of locality.
template <typename Message>
void route_by_zone(const ZoneRule& rule, Message& message) {
  auto& zones = *message.mutable_locality_lb_config()->mutable_zone_aware_lb_config();
  zones.mutable_routing_enabled()->set_value(rule.percent);
  zones.mutable_min_cluster_size()->set_value(rule.fewest);
}

void write_zone_aware(LoadBalancingPolicy& policy) {
  RoundRobin message;
  route_by_zone(kZonesOfLarge, message);
  add(policy, message);
}

// With a bias of 0 the shares follow the weights, where these differ.
void write_zone_aware_weights(LoadBalancingPolicy& policy) {
  LeastRequest message;
  route_by_zone(kZonesOfMost, message);
  message.mutable_active_request_bias()->set_default_value(kNoBias);
  add(policy, message);
}

void write_biased(LoadBalancingPolicy& policy) {
  LeastRequest message;
  message.mutable_active_request_bias()->set_default_value(kStrongBias);
  add(policy, message);
}

// The first row stands for a CDS resource without a policy.
constexpr PolicyRow kRows[] = {
    {"default", Connects::kAll, Chooses::kEverybody, nullptr, Shares::kAlike, true},
    {"round_robin", Connects::kAll, Chooses::kEverybody, write_default<RoundRobin>, Shares::kAlike},
    {"wrr_locality", Connects::kAll, Chooses::kEverybody, write_slow<RoundRobin>},
    {"pick_first", Connects::kOne, Chooses::kOne, write_default<PickFirst>},
    {"pick_first_shuffled", Connects::kOne, Chooses::kOne, write_shuffled},
    {"wrr_locality_of_pick_first",
     Connects::kOnePerLocality,
     Chooses::kOnePerLocality,
     write_by_locality<PickFirst>},
    {"ring_hash", Connects::kAsked, Chooses::kByHash, write_ring_hash},
    {"least_request", Connects::kAll, Chooses::kEverybody, write_slow<LeastRequest>},
    {"random",
     Connects::kAll,
     Chooses::kEverybody,
     write_by_locality<Random>,
     Shares::kAlike,
     true},
    {"weighted_round_robin",
     Connects::kAll,
     Chooses::kEverybody,
     write_weighted,
     Shares::kByLoad,
     true},
    {"weighted_round_robin_by_calls", Connects::kAll, Chooses::kEverybody, write_weighted_by_calls},
    {"maglev", Connects::kAll, Chooses::kByHash, write_maglev},
    {"random_subsetting", Connects::kAll, Chooses::kEverybody, write_subsetting},
    {"zone_aware_by_cluster",
     Connects::kAll,
     Chooses::kEverybody,
     nullptr,
     Shares::kAlike,
     true,
     kZonesByCluster},
    {"zone_aware",
     Connects::kAll,
     Chooses::kEverybody,
     write_zone_aware,
     Shares::kAlike,
     true,
     kZonesOfLarge},
    {"zone_aware_weights",
     Connects::kAll,
     Chooses::kEverybody,
     write_zone_aware_weights,
     Shares::kByWeight,
     true,
     kZonesOfMost,
     kNoBias},
    {"least_request_biased",
     Connects::kAll,
     Chooses::kEverybody,
     write_biased,
     Shares::kByWeight,
     false,
     std::nullopt,
     kStrongBias},
};

}  // namespace

std::span<const PolicyRow> policy_table() {
  return kRows;
}

}  // namespace signalbox::sim
