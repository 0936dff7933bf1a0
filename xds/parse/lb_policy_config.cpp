// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/lb_policy_config.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "signalbox/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/maglev/v3/maglev.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/random/v3/random.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb.h"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

namespace policies = envoy::extensions::load_balancing_policies;
using RingHashLbConfig = envoy::config::cluster::v3::Cluster::RingHashLbConfig;
using LeastRequestLbConfig = envoy::config::cluster::v3::Cluster::LeastRequestLbConfig;
using RoundRobinLbConfig = envoy::config::cluster::v3::Cluster::RoundRobinLbConfig;
using CommonLbConfig = envoy::config::cluster::v3::Cluster::CommonLbConfig;
using MaglevLbConfig = envoy::config::cluster::v3::Cluster::MaglevLbConfig;

constexpr std::uint64_t kMaxRingSize = 8'388'608;
// The default of gRPC's own configuration (A42), which a TypedStruct has.
constexpr std::uint64_t kMaxRingSizeOfStructure = 4'096;
constexpr std::uint32_t kMaxChoices = 10;
constexpr Duration kShortestWeightUpdate = std::chrono::milliseconds(100);  // A58.
constexpr Duration kDefaultReportingPeriod = std::chrono::seconds(10);      // A58.
constexpr Duration kLongestSlowStart = std::chrono::hours(1);
constexpr std::uint64_t kMaxTableSize = 5'000'011;

std::uint64_t ring_size(const ::google::protobuf::UInt64Value& proto, const Field& field) {
  if (proto.value() == 0 || proto.value() > kMaxRingSize) {
    field.add(absl::StrCat("must be in [1, ", kMaxRingSize, "], found ", proto.value()));
  }
  return proto.value();
}

void check_order(const RingHashConfig& config,
                 absl::string_view most,
                 bool has_minimum,
                 const Field& minimum) {
  if (config.min_ring_size <= config.max_ring_size) return;
  minimum.add(absl::StrCat("must be at most ",
                           most,
                           ", which is ",
                           config.max_ring_size,
                           ", found ",
                           config.min_ring_size,
                           has_minimum ? "" : " (its default)"));
}

// A template, because two messages have the same fields for sizes: the policy's own message, and
// the cluster's ring_hash_lb_config (A42).
template <typename Proto>
LbConfigPtr to_ring_hash(const Proto& proto, bool is_xx_hash, const Field& field) {
  RingHashConfig config;
  const Field minimum = field.at("minimum_ring_size");
  if (proto.has_maximum_ring_size())
    config.max_ring_size = ring_size(proto.maximum_ring_size(), field.at("maximum_ring_size"));
  if (proto.has_minimum_ring_size())
    config.min_ring_size = ring_size(proto.minimum_ring_size(), minimum);
  check_order(config, "maximum_ring_size", proto.has_minimum_ring_size(), minimum);
  if (!is_xx_hash) {
    const std::string name = Proto::HashFunction_Name(proto.hash_function());
    field.at("hash_function")
        .add(absl::StrCat("must be XX_HASH, found ", enum_text(proto.hash_function(), name)));
  }
  return make_lb_config(config);
}

// A field of a structure; null: it is not set.
const ::google::protobuf::Value* find(const ::google::protobuf::Struct& structure,
                                      const char* name) {
  const auto found = structure.fields().find(name);
  return found == structure.fields().end() ? nullptr : &found->second;
}

void read_ring_size(const ::google::protobuf::Struct& structure,
                    const char* name,
                    std::uint64_t& size,
                    const Field& field) {
  const auto* const value = find(structure, name);
  if (value == nullptr) return;
  const double number = value->number_value();
  if (!value->has_number_value() || number != std::floor(number) || number < 1 ||
      number > static_cast<double>(kMaxRingSize)) {
    field.at(name).add(absl::StrCat(
        "must be a whole number in [1, ", kMaxRingSize, "], found ", json_text(*value)));
    return;
  }
  size = static_cast<std::uint64_t>(number);
}

bool is_in_header_names(char c) {
  return absl::ascii_islower(static_cast<unsigned char>(c)) ||
         absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

std::string read_hash_header(const ::google::protobuf::Struct& structure, const Field& field) {
  const auto* const value = find(structure, "requestHashHeader");
  if (value == nullptr) return "";
  const Field place = field.at("requestHashHeader");
  std::string name = absl::AsciiStrToLower(value->string_value());
  if (!value->has_string_value() || !std::ranges::all_of(name, is_in_header_names)) {
    place.add(absl::StrCat("must be the name of a header, found ", json_text(*value)));
  } else if (absl::EndsWith(name, "-bin")) {
    place.add(absl::StrCat("must not be a binary header (-bin), found ", in_quotes(name)));
  } else {
    require_name_length(name, place);
  }
  return name;
}

// A template, because two messages have the same fields: the SlowStartConfig of the policies' own
// messages, and that of Cluster. Without a window there is no slow start, as in Envoy.
template <typename Proto>
std::optional<SlowStart> to_slow_start(const Proto& proto, const Field& field) {
  SlowStart rules;
  const Field window = field.at("slow_start_window");
  rules.window = parse_duration(proto.slow_start_window(), window);
  if (rules.window > kLongestSlowStart) {
    const auto& found = proto.slow_start_window();
    window.add(
        absl::StrCat("must be at most 3600 s, found ",
                     found.seconds(),
                     found.nanos() == 0 ? " s" : absl::StrCat(" s and ", found.nanos(), " ns")));
  }
  if (proto.has_aggression()) {
    rules.aggression = proto.aggression().default_value();
    if (!std::isfinite(rules.aggression) || rules.aggression <= 0) {
      field.at("aggression.default_value")
          .add(absl::StrCat("must be more than 0, and finite, found ", rules.aggression));
    }
  }
  if (proto.has_min_weight_percent()) {
    rules.min_weight_percent = proto.min_weight_percent().value();
    if (!(rules.min_weight_percent >= 0 && rules.min_weight_percent <= 100)) {
      field.at("min_weight_percent.value")
          .add(absl::StrCat("must be in [0, 100], found ", rules.min_weight_percent));
    }
  }
  if (rules.window == Duration::zero()) return std::nullopt;
  return rules;
}

// The slow_start_config of a policy's configuration.
template <typename Proto>
std::optional<SlowStart> slow_start_of(const Proto& proto, const Field& field) {
  if (!proto.has_slow_start_config()) return std::nullopt;
  return to_slow_start(proto.slow_start_config(), field.at("slow_start_config"));
}

using PolicyZones = policies::common::v3::LocalityLbConfig::ZoneAwareLbConfig;

// The fields that Cluster.CommonLbConfig lacks. As in Envoy, force_local_zone comes before the
// older force_locality_direct_routing.
void read_newer_zone_fields(const PolicyZones& proto, ZoneAware& rules, const Field& field) {
  if (proto.has_force_local_zone()) {
    const auto& force = proto.force_local_zone();
    rules.force_from = force.has_min_size() ? std::max(force.min_size().value(), 1U) : 1;
  } else if (proto.force_locality_direct_routing()) {
    rules.force_from = 1;
  }
  switch (proto.locality_basis()) {
    case PolicyZones::HEALTHY_HOSTS_NUM:
      return;
    case PolicyZones::HEALTHY_HOSTS_WEIGHT:
      rules.basis = ZoneBasis::kWeights;
      return;
    default:
      field.at("locality_basis")
          .add(absl::StrCat("must be HEALTHY_HOSTS_NUM or HEALTHY_HOSTS_WEIGHT, found ",
                            static_cast<int>(proto.locality_basis())));
  }
}

// A template, because two messages have the same fields: that of the policies' own messages, and
// the cluster's. As in Envoy, the percentage is rounded.
template <typename Proto>
ZoneAware to_zone_aware(const Proto& proto, const Field& field) {
  ZoneAware rules;
  if (proto.has_routing_enabled()) {
    const double percent = proto.routing_enabled().value();
    if (percent >= 0 && percent <= 100) {
      rules.routing_enabled = static_cast<std::uint32_t>(std::lround(percent));
    } else {
      field.at("routing_enabled.value")
          .add(absl::StrCat("must be 0 to 100 (percent), found ", percent));
    }
  }
  if (proto.has_min_cluster_size()) rules.min_cluster_size = proto.min_cluster_size().value();
  if constexpr (std::is_same_v<Proto, PolicyZones>) read_newer_zone_fields(proto, rules, field);
  return rules;
}

// A template, because two messages have the same field. `field`: the message with the field.
template <typename Proto>
WrrLocalityConfig to_localities(const Proto& proto, const Field& field) {
  WrrLocalityConfig localities;
  if (!proto.has_zone_aware_lb_config()) return localities;
  const auto& zones = proto.zone_aware_lb_config();
  localities.zone_aware = to_zone_aware(zones, field.at("zone_aware_lb_config"));
  localities.fail_traffic_on_panic = zones.fail_traffic_on_panic();
  return localities;
}

// `policy`, below the choice of a locality if its message asks for one: by zones, or by the weights
// of localities. Without that the policy itself uses the endpoints of all localities.
template <typename Proto>
LbConfigPtr with_localities(LbConfigPtr policy, const Proto& proto, const Field& field) {
  const auto& wanted = proto.locality_lb_config();
  if (!wanted.has_zone_aware_lb_config() && !wanted.has_locality_weighted_lb_config())
    return policy;
  WrrLocalityConfig localities = to_localities(wanted, field.at("locality_lb_config"));
  localities.child = std::move(policy);
  return make_lb_config(std::move(localities));
}

// A template, because two messages have the same fields: the policy's own message, and the
// cluster's least_request_lb_config (A48).
template <typename Proto>
LbConfigPtr to_least_request(const Proto& proto, const Field& field) {
  LeastRequestConfig config;
  if (proto.has_choice_count()) {
    const std::uint32_t count = proto.choice_count().value();
    if (count < 2) field.at("choice_count").add(absl::StrCat("must be at least 2, found ", count));
    config.choice_count = std::min(count, kMaxChoices);
  }
  config.slow_start = slow_start_of(proto, field);
  if (proto.has_active_request_bias()) {
    const double bias = proto.active_request_bias().default_value();
    if (!std::isfinite(bias) || bias < 0) {
      field.at("active_request_bias.default_value")
          .add(absl::StrCat("must be 0 or more, and finite, found ", bias));
    }
    config.active_request_bias = bias;
  }
  return make_lb_config(config);
}

// Trial division. A number up to kMaxTableSize needs at most 1,118 divisions.
bool is_prime(std::uint64_t number) {
  if (number < 4) return number >= 2;
  if (number % 2 == 0) return false;
  for (std::uint64_t divisor = 3; divisor * divisor <= number; divisor += 2) {
    if (number % divisor == 0) return false;
  }
  return true;
}

// A template, because two messages have the same fields: the policy's own message, and the
// cluster's maglev_lb_config.
template <typename Proto>
LbConfigPtr to_maglev(const Proto& proto, const Field& field) {
  MaglevConfig config;
  if (proto.has_table_size()) {
    const std::uint64_t size = proto.table_size().value();
    if (size > kMaxTableSize || !is_prime(size)) {
      field.at("table_size")
          .add(absl::StrCat("must be a prime number in [2, ", kMaxTableSize, "], found ", size));
    }
    config.table_size = static_cast<std::uint32_t>(std::min(size, kMaxTableSize));
  }
  return make_lb_config(config);
}

}  // namespace

LbConfigPtr parse_round_robin(const Extension& extension, const Field& field) {
  policies::round_robin::v3::RoundRobin proto;
  if (!decode(extension, proto, field)) return nullptr;
  return with_localities(
      make_lb_config(RoundRobinConfig{slow_start_of(proto, field)}), proto, field);
}

LbConfigPtr parse_pick_first(const Extension& extension, const Field& field) {
  policies::pick_first::v3::PickFirst proto;
  if (!decode(extension, proto, field)) return nullptr;
  return make_lb_config(PickFirstConfig{proto.shuffle_address_list()});
}

LbConfigPtr parse_ring_hash(const Extension& extension, const Field& field) {
  using policies::ring_hash::v3::RingHash;
  RingHash proto;
  if (!decode(extension, proto, field)) return nullptr;
  const auto function = proto.hash_function();
  return to_ring_hash(
      proto, function == RingHash::DEFAULT_HASH || function == RingHash::XX_HASH, field);
}

LbConfigPtr parse_ring_hash_structure(const Extension& extension, const Field& field) {
  const auto& structure = *extension.structure;
  RingHashConfig config;
  config.max_ring_size = kMaxRingSizeOfStructure;
  read_ring_size(structure, "minRingSize", config.min_ring_size, field);
  read_ring_size(structure, "maxRingSize", config.max_ring_size, field);
  const bool has_minimum = find(structure, "minRingSize") != nullptr;
  check_order(config, "maxRingSize", has_minimum, field.at("minRingSize"));
  config.request_hash_header = read_hash_header(structure, field);
  return make_lb_config(std::move(config));
}

LbConfigPtr parse_least_request(const Extension& extension, const Field& field) {
  policies::least_request::v3::LeastRequest proto;
  if (!decode(extension, proto, field)) return nullptr;
  return with_localities(to_least_request(proto, field), proto, field);
}

LbConfigPtr parse_weighted_round_robin(const Extension& extension, const Field& field) {
  policies::client_side_weighted_round_robin::v3::ClientSideWeightedRoundRobin proto;
  if (!decode(extension, proto, field)) return nullptr;
  WeightedRoundRobinConfig config;
  if (proto.has_blackout_period())
    config.blackout_period = parse_duration(proto.blackout_period(), field.at("blackout_period"));
  if (proto.has_weight_expiration_period()) {
    config.weight_expiration_period =
        parse_duration(proto.weight_expiration_period(), field.at("weight_expiration_period"));
  }
  if (proto.has_weight_update_period()) {
    config.weight_update_period =
        std::max(parse_duration(proto.weight_update_period(), field.at("weight_update_period")),
                 kShortestWeightUpdate);
  }
  if (proto.has_error_utilization_penalty()) {
    const float penalty = proto.error_utilization_penalty().value();
    if (!std::isfinite(penalty) || penalty < 0) {
      field.at("error_utilization_penalty")
          .add(absl::StrCat("must be 0 or more, and finite, found ", penalty));
    }
    config.error_utilization_penalty = penalty;
  }
  Duration reporting_period = kDefaultReportingPeriod;
  if (proto.has_oob_reporting_period()) {
    reporting_period =
        parse_duration(proto.oob_reporting_period(), field.at("oob_reporting_period"));
  }
  if (proto.enable_oob_load_report().value()) config.oob_reporting_period = reporting_period;
  const auto& names = proto.metric_names_for_computing_utilization();
  config.metric_names_for_computing_utilization.assign(names.begin(), names.end());
  config.slow_start = slow_start_of(proto, field);
  return make_lb_config(std::move(config));
}

LbConfigPtr parse_random(const Extension& extension, const Field& field) {
  policies::random::v3::Random proto;
  if (!decode(extension, proto, field)) return nullptr;
  return with_localities(make_lb_config(RandomConfig{}), proto, field);
}

LbConfigPtr parse_maglev(const Extension& extension, const Field& field) {
  policies::maglev::v3::Maglev proto;
  if (!decode(extension, proto, field)) return nullptr;
  return to_maglev(proto, field);
}

LbConfigPtr parse_ring_hash(const RingHashLbConfig& proto, const Field& field) {
  return to_ring_hash(proto, proto.hash_function() == RingHashLbConfig::XX_HASH, field);
}

LbConfigPtr parse_round_robin(const RoundRobinLbConfig& proto, const Field& field) {
  return make_lb_config(RoundRobinConfig{slow_start_of(proto, field)});
}

LbConfigPtr parse_least_request(const LeastRequestLbConfig& proto, const Field& field) {
  return to_least_request(proto, field);
}

LbConfigPtr parse_maglev(const MaglevLbConfig& proto, const Field& field) {
  return to_maglev(proto, field);
}

WrrLocalityConfig parse_localities(const CommonLbConfig& proto, const Field& field) {
  return to_localities(proto, field);
}

}  // namespace signalbox::xds
