// SPDX-License-Identifier: Apache-2.0
//
// Configurations of LB policies, and the result in a runtime that lacks a policy. The tests of A42,
// A48, A52 and A76 in tests/spec have more configurations.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"

namespace signalbox::xds {

namespace {

using namespace std::chrono_literals;

const std::string kType = "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin";

WeightedRoundRobinConfig parsed(const std::string& fields) {
  return config_of<WeightedRoundRobinConfig>(list(entry(kType, fields)));
}

std::string config_text(const std::string& fields) {
  return list(entry("random_subsetting.v3.RandomSubsetting", fields));
}

const std::string kChild = "child_policy { " + kRoundRobin + " } ";

}  // namespace

TEST_CASE("A58: the configuration and its defaults", "[xds][parse][A58][A114]") {
  CHECK(parsed("") == WeightedRoundRobinConfig{});
  CHECK(WeightedRoundRobinConfig{}.blackout_period == 10s);
  CHECK(WeightedRoundRobinConfig{}.weight_expiration_period == 3min);
  CHECK(WeightedRoundRobinConfig{}.weight_update_period == 1s);
  CHECK(parsed("blackout_period { seconds: 0 } weight_expiration_period { seconds: 60 } "
               "weight_update_period { nanos: 1000000 } error_utilization_penalty { value: 0.5 } "
               "metric_names_for_computing_utilization: \"named_metrics.queue\"") ==
        WeightedRoundRobinConfig{0s, 60s, 100ms, 0.5, {"named_metrics.queue"}});
}

TEST_CASE("A58: a penalty that is negative or no number is refused", "[xds][parse][A58]") {
  const auto [text, found] =
      GENERATE(table<std::string, std::string>({{"-0.1", "-0.1"}, {"nan", "nan"}, {"inf", "inf"}}));
  CHECK(error_in(list(entry(kType, "error_utilization_penalty { value: " + text + " }"))) ==
        kValue + ".error_utilization_penalty: must be 0 or more, and finite, found " + found);
}

TEST_CASE("A58: periods must be valid durations", "[xds][parse][A58]") {
  for (const std::string field : {"oob_reporting_period",
                                  "blackout_period",
                                  "weight_expiration_period",
                                  "weight_update_period"}) {
    const std::string error = error_in(list(entry(kType, field + " { seconds: -1 }")));
    CHECK_THAT(error, Catch::StartsWith(kValue + "." + field));
  }
}

TEST_CASE("A58: enable_oob_load_report asks for streams, by default a report each 10 s",
          "[xds][parse][A58]") {
  WeightedRoundRobinConfig wanted;
  CHECK(parsed("enable_oob_load_report { value: false } oob_reporting_period { seconds: 1 }") ==
        wanted);
  wanted.oob_reporting_period = 10s;
  CHECK(parsed("enable_oob_load_report { value: true }") == wanted);
  wanted.oob_reporting_period = 1500ms;
  CHECK(parsed("enable_oob_load_report { value: true } "
               "oob_reporting_period { seconds: 1 nanos: 500000000 }") == wanted);
}

TEST_CASE("A68: subset_size and child_policy must be set", "[xds][parse][A68]") {
  const auto config =
      config_of<RandomSubsettingConfig>(config_text("subset_size { value: 3 } " + kChild));
  CHECK(config.subset_size == 3);
  CHECK(same_config(config.child, make_lb_config(RoundRobinConfig{})));
  CHECK(error_in(config_text(kChild)) == kValue + ".subset_size: must be at least 1, found none");
  CHECK(error_in(config_text("subset_size { value: 0 } " + kChild)) ==
        kValue + ".subset_size: must be at least 1, found 0");
  CHECK(error_in(config_text("subset_size { value: 3 }")) ==
        kValue + ".child_policy: must be set, found none");
}

TEST_CASE("parse_cluster: who names no supported policy is told the registered ones too",
          "[xds][parse][custom][A52]") {
  ParseOptions options = without_policies();
  options.custom_lb_policies = std::make_shared<const CustomPolicyParsers>(
      CustomPolicyParsers{{"com.example.Quorum", nullptr}, {"com.example.Nearest", nullptr}});
  CHECK(error_in(list(entry("ring_hash.v3.RingHash")), options) ==
        "load_balancing_policy: must name a policy that is supported (pick_first, round_robin, "
        "wrr_locality, com.example.Nearest, com.example.Quorum), found "
        "\"envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash\"");
}

TEST_CASE("parse_cluster: an entry that cannot be read is the one error of its list",
          "[xds][parse][A52]") {
  const std::string place = "load_balancing_policy.policies[0].typed_extension_config.typed_config";
  CHECK(error_in(list(any("type_url: \"\" value: \"x\""))) ==
        place + ".type_url: must name a type, found \"\"");
  CHECK(error_in(list(typed_struct("", ""))) ==
        place + ".value.type_url: must be set in a TypedStruct, found none");
}

TEST_CASE("parse_cluster: even pick_first may be taken away", "[xds][parse][A52]") {
  ParseOptions options;
  options.lb_policies = {"round_robin"};
  CHECK(same_config(
      value_of<Cluster>(parse(list(entry("pick_first.v3.PickFirst") + kRoundRobin), options))
          .lb_policy,
      make_lb_config(RoundRobinConfig{})));
}

TEST_CASE("parse_cluster: random, by the enum and by its own message",
          "[xds][parse][random][A52]") {
  CHECK(same_config(value_of<Cluster>(parse("lb_policy: RANDOM")).lb_policy,
                    make_lb_config(WrrLocalityConfig{make_lb_config(RandomConfig{})})));
  config_of<RandomConfig>(list(entry("random.v3.Random")));
}

TEST_CASE("parse_cluster: maglev, by the enum and by its own message",
          "[xds][parse][maglev][A52]") {
  const std::string size = "table_size { value: 5000011 }";
  CHECK(config_of<MaglevConfig>("lb_policy: MAGLEV").table_size == 65'537);
  CHECK(config_of<MaglevConfig>("lb_policy: MAGLEV maglev_lb_config { " + size + " }").table_size ==
        5'000'011);
  CHECK(config_of<MaglevConfig>(list(entry("maglev.v3.Maglev"))).table_size == 65'537);
  CHECK(config_of<MaglevConfig>(list(entry("maglev.v3.Maglev", size))).table_size == 5'000'011);
  CHECK(config_of<MaglevConfig>(list(entry("maglev.v3.Maglev", "table_size { value: 2 }")))
            .table_size == 2);
}

TEST_CASE("parse_cluster: a table of maglev that is not prime, or too large, is refused",
          "[xds][parse][maglev]") {
  // 4, 9 and 25 are squares of primes. 5,000,077 is a prime, and larger than the largest size.
  const auto size = GENERATE(
      as<std::string>{}, "0", "1", "4", "9", "25", "65536", "5000077", "9223372036854775807");
  const std::string fields = "table_size { value: " + size + " }";
  const std::string reason = "must be a prime number in [2, 5000011], found " + size;
  CHECK(error_in(list(entry("maglev.v3.Maglev", fields))) == kValue + ".table_size: " + reason);
  CHECK(error_in("lb_policy: MAGLEV maglev_lb_config { " + fields + " }") ==
        "maglev_lb_config.table_size: " + reason);
}

TEST_CASE("parse_cluster: an enum whose policy the runtime lacks is an error",
          "[xds][parse][A27][A52]") {
  const auto policy = GENERATE(as<std::string>{}, "RING_HASH", "LEAST_REQUEST", "RANDOM", "MAGLEV");
  CHECK(error_in("lb_policy: " + policy, without_policies()) ==
        "lb_policy: must be ROUND_ROBIN where load_balancing_policy is not set, found " + policy);
  CHECK(error_in("lb_policy: CLUSTER_PROVIDED") ==
        "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST or RANDOM or MAGLEV where "
        "load_balancing_policy "
        "is not set, found CLUSTER_PROVIDED");
}

TEST_CASE("parse_cluster: the first and the last number of a range are valid",
          "[xds][parse][A58][A76][A100-9][ENV-37]") {
  CHECK(parsed("error_utilization_penalty { value: 0 }").error_utilization_penalty == 0);
  const std::string slow_start =
      "slow_start_config { slow_start_window { seconds: 1 } min_weight_percent { value: 100 } }";
  CHECK(parsed(slow_start).slow_start == SlowStart{1s, 1, 100});
  CHECK(config_of<RingHashConfig>(
            list(typed_struct("ring_hash_experimental",
                              "fields { key: \"minRingSize\" value { number_value: 1 } }")))
            .min_ring_size == 1);
  CHECK(config_of<WrrLocalityConfig>(
            "common_lb_config { zone_aware_lb_config { routing_enabled { value: 100 } } }")
            .zone_aware == ZoneAware{100});
}

// --- ring_hash ---------------------------------------------------------------------

TEST_CASE("parse_cluster: a runtime has ring_hash and least_request unasked",
          "[xds][parse][A42][A48][A52]") {
  const auto chosen = [](const std::string& fields) {
    return value_of<Cluster>(parse(fields, ParseOptions{})).lb_policy;
  };
  CHECK(same_config(chosen("lb_policy: RING_HASH"), make_lb_config(RingHashConfig{})));
  CHECK(same_config(chosen(list(entry("ring_hash.v3.RingHash") + kRoundRobin)),
                    make_lb_config(RingHashConfig{})));
  CHECK(same_config(chosen("lb_policy: LEAST_REQUEST"),
                    make_lb_config(WrrLocalityConfig{make_lb_config(LeastRequestConfig{})})));
}

TEST_CASE("parse_cluster: the header that ring_hash_experimental hashes has no endless name",
          "[xds][parse][limits][A76]") {
  ParseOptions options = all_parse_options();
  options.limits.max_name_length = 6;
  const auto error_with = [&](const std::string& header) {
    return error_in(
        list(typed_struct(
            "ring_hash_experimental",
            "fields { key: \"requestHashHeader\" value { string_value: \"" + header + "\" } }")),
        options);
  };
  CHECK(error_with("x-sess").empty());
  CHECK(error_with("x-sessi") == kValue +
                                     ".requestHashHeader: must not be longer than 6 bytes, found 7 "
                                     "bytes: \"x-sessi\" (limit max_name_length)");
  // The text that was found is told as it is.
  CHECK(error_with("\\303\\251") ==
        kValue + ".requestHashHeader: must be the name of a header, found \"é\"");
}

// --- structures ---------------------------------------------------------------------

TEST_CASE("parse_cluster: what a custom policy's own parser says of its structure",
          "[xds][parse][A52]") {
  struct Parsed final : CustomPolicyConfig {};

  const auto made = std::make_shared<const Parsed>();
  std::string answer;
  const auto parser = [&](const std::string& json) -> absl::StatusOr<CustomPolicyConfigPtr> {
    CHECK(json == R"({"a":"b"})");
    if (!answer.empty()) return absl::InvalidArgumentError(answer);
    return made;
  };
  ParseOptions options;
  options.custom_lb_policies = std::make_shared<const CustomPolicyParsers>(
      CustomPolicyParsers{{"com.example.Nearest", parser}});
  const std::string custom = list(
      typed_struct("com.example.Nearest", R"(fields { key: "a" value { string_value: "b" } })") +
      kRoundRobin);
  const LbConfigPtr config = value_of<Cluster>(parse(custom, options)).lb_policy;
  REQUIRE(std::holds_alternative<CustomConfig>(*config));
  CHECK(std::get<CustomConfig>(*config).parsed == made);

  // An error in the custom policy is reported, although another policy comes after it.
  const std::string before = kValue + ": must be a configuration of com.example.Nearest: ";
  answer = "a: must be a number, found \"b\"";
  CHECK(error_in(custom, options) == before + answer);
  CHECK(parse(custom, options).rejection == Rejection{RejectionReason::kSemantic, ""});
  // The custom parser's error text is escaped and cut, so that a NACK can carry it.
  answer = "\xff";
  CHECK(error_in(custom, options) == before + "\\377");
  answer = "two\nlines, \xc3\xa9";
  CHECK(error_in(custom, options) == before + "two\\nlines, \xc3\xa9");
  answer = std::string(1000, '\x01');
  CHECK(error_in(custom, options).size() == before.size() + 1000);
  answer = std::string(1000, '\xff');
  CHECK(error_in(custom, options).size() == before.size() + 1000);
  answer = std::string(2000, 'x');
  CHECK(error_in(custom, options) == before + std::string(1000, 'x'));
}

TEST_CASE("parse_cluster: a custom policy below wrr_locality", "[xds][parse][A52]") {
  ParseOptions options;
  options.custom_lb_policies = std::make_shared<const CustomPolicyParsers>(
      CustomPolicyParsers{{"com.example.Nearest", nullptr}});
  const std::string inner = typed_struct(
      "com.example.Nearest", R"(fields { key: "a" value { string_value: "\303\251" } })");
  const auto config =
      value_of<Cluster>(parse(list(entry("wrr_locality.v3.WrrLocality",
                                         "endpoint_picking_policy { " + inner + " }")),
                              options))
          .lb_policy;
  CHECK(same_config(config,
                    make_lb_config(WrrLocalityConfig{
                        make_lb_config(CustomConfig{"com.example.Nearest", R"({"a":"é"})"})})));
}

TEST_CASE("parse_cluster: a structure under one of our names is read as that message",
          "[xds][parse][A39][A52]") {
  const std::string type = "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest";
  CHECK(config_of<LeastRequestConfig>(
            list(typed_struct(type,
                              "fields { key: \"choiceCount\" value { number_value: 5 } } "
                              "fields { key: \"unknown\" value { bool_value: true } }")))
            .choice_count == 5);
  const std::string error = error_in(
      list(typed_struct(type, "fields { key: \"choiceCount\" value { string_value: \"x\" } }")));
  CHECK(error.rfind(kValue + ": must be of type LeastRequest, found a structure that is not: ",
                    0) == 0);
  const auto received = parse(
      list(typed_struct(type, "fields { key: \"choiceCount\" value { string_value: \"x\" } }")));
  CHECK(received.rejection == Rejection{RejectionReason::kParse, ""});
}

TEST_CASE("parse_cluster: zone_aware_lb_config beside lb_policy makes wrr_locality zone-aware",
          "[xds][parse][ENV-37][ENV-39]") {
  const auto config = [](const std::string& fields, const std::string& policy = "") {
    return config_of<WrrLocalityConfig>(policy + " common_lb_config { zone_aware_lb_config { " +
                                        fields + " } }");
  };
  const auto zones = [&](const std::string& fields, const std::string& policy = "") {
    return config(fields, policy).zone_aware;
  };
  CHECK_FALSE(config_of<WrrLocalityConfig>("").zone_aware.has_value());
  CHECK(zones("") == ZoneAware{});
  CHECK(ZoneAware{} == ZoneAware{100, 6, ZoneBasis::kEndpoints, std::nullopt});
  CHECK(zones("routing_enabled { value: 49.5 } min_cluster_size { value: 0 }") == ZoneAware{50, 0});
  CHECK(zones("routing_enabled { value: 0 }", "lb_policy: LEAST_REQUEST") == ZoneAware{0});
  CHECK_FALSE(config("").fail_traffic_on_panic);
  CHECK(config("fail_traffic_on_panic: true").fail_traffic_on_panic);
  CHECK(zones("", "lb_policy: RANDOM") == ZoneAware{});
  // These policies choose no locality, and load_balancing_policy has its own field.
  config_of<RingHashConfig>("lb_policy: RING_HASH common_lb_config { zone_aware_lb_config { } }");
  config_of<RoundRobinConfig>(list(kRoundRobin) + " common_lb_config { zone_aware_lb_config { } }");
}

TEST_CASE("parse_cluster: a locality_lb_config puts a zone-aware wrr_locality above its policy",
          "[xds][parse][ENV-39]") {
  const std::string fields =
      "locality_lb_config { zone_aware_lb_config { min_cluster_size { value: 3 } } }";
  const auto [type, child] = GENERATE(table<std::string, LbConfigPtr>({
      {"round_robin.v3.RoundRobin", make_lb_config(RoundRobinConfig{})},
      {"least_request.v3.LeastRequest", make_lb_config(LeastRequestConfig{})},
      {"random.v3.Random", make_lb_config(RandomConfig{})},
  }));
  const auto config = config_of<WrrLocalityConfig>(list(entry(type, fields)));
  CHECK(config.zone_aware == ZoneAware{100, 3});
  CHECK(same_config(config.child, child));
  // Below wrr_locality there is no locality to choose.
  const auto below = config_of<WrrLocalityConfig>(list(entry(
      "wrr_locality.v3.WrrLocality", "endpoint_picking_policy { " + entry(type, fields) + " }")));
  CHECK_FALSE(below.zone_aware.has_value());
  CHECK(same_config(below.child, child));
  CHECK(same_config(value_of<Cluster>(parse(list(entry(type, "locality_lb_config { }")))).lb_policy,
                    child));
}

TEST_CASE("parse_cluster: fail_traffic_on_panic holds below a WrrLocality, too",
          "[xds][parse][ENV-38]") {
  const auto config = [](const std::string& endpoint_policy) {
    return config_of<WrrLocalityConfig>(list(entry(
        "wrr_locality.v3.WrrLocality", "endpoint_picking_policy { " + endpoint_policy + " }")));
  };
  const std::string zones =
      "locality_lb_config { zone_aware_lb_config { fail_traffic_on_panic: true } }";
  const auto type = GENERATE(as<std::string>{},
                             "round_robin.v3.RoundRobin",
                             "least_request.v3.LeastRequest",
                             "random.v3.Random");
  CHECK_FALSE(config(entry(type)).fail_traffic_on_panic);
  CHECK(config(entry(type, zones)).fail_traffic_on_panic);
  CHECK_FALSE(config(entry(type, zones)).zone_aware.has_value());
  const std::string inner = "endpoint_picking_policy { " + entry(type, zones) + " }";
  CHECK(config(entry("wrr_locality.v3.WrrLocality", inner)).fail_traffic_on_panic);
}

TEST_CASE("parse_cluster: locality_basis and force_local_zone", "[xds][parse][ENV-42][ENV-43]") {
  const auto zones = [](const std::string& fields) {
    return config_of<WrrLocalityConfig>(
               list(entry("round_robin.v3.RoundRobin",
                          "locality_lb_config { zone_aware_lb_config { " + fields + " } }")))
        .zone_aware;
  };
  CHECK(zones("locality_basis: HEALTHY_HOSTS_NUM") == ZoneAware{});
  CHECK(zones("locality_basis: HEALTHY_HOSTS_WEIGHT") == ZoneAware{.basis = ZoneBasis::kWeights});
  CHECK(zones("force_local_zone { }") == ZoneAware{.force_from = 1});
  CHECK(zones("force_local_zone { min_size { value: 4 } }") == ZoneAware{.force_from = 4});
  // A zone without endpoints can keep no calls.
  CHECK(zones("force_local_zone { min_size { value: 0 } }") == ZoneAware{.force_from = 1});
  CHECK(zones("force_locality_direct_routing: true") == ZoneAware{.force_from = 1});
  CHECK(zones("force_locality_direct_routing: true force_local_zone { min_size { value: 4 } }") ==
        ZoneAware{.force_from = 4});
}

TEST_CASE("parse_cluster: an unknown locality_basis is refused", "[xds][parse][ENV-42]") {
  CHECK(
      error_in(list(entry("random.v3.Random",
                          "locality_lb_config { zone_aware_lb_config { locality_basis: 2 } }"))) ==
      kValue +
          ".locality_lb_config.zone_aware_lb_config.locality_basis: must be "
          "HEALTHY_HOSTS_NUM or HEALTHY_HOSTS_WEIGHT, found 2");
}

TEST_CASE("parse_cluster: locality_weighted_lb_config chooses localities by weight",
          "[xds][parse][ENV-39]") {
  const std::string fields = "locality_lb_config { locality_weighted_lb_config { } }";
  const auto config = config_of<WrrLocalityConfig>(list(entry("random.v3.Random", fields)));
  CHECK(config == WrrLocalityConfig{make_lb_config(RandomConfig{})});
  CHECK(config_of<WrrLocalityConfig>("common_lb_config { locality_weighted_lb_config { } }") ==
        WrrLocalityConfig{make_lb_config(RoundRobinConfig{})});
}

TEST_CASE("parse_cluster: a routing_enabled that is no percentage is refused",
          "[xds][parse][ENV-37]") {
  const auto [text, found] = GENERATE(table<std::string, std::string>(
      {{"-1", "-1"}, {"100.5", "100.5"}, {"nan", "nan"}, {"inf", "inf"}}));
  const std::string zones = "zone_aware_lb_config { routing_enabled { value: " + text + " } }";
  const std::string error =
      "zone_aware_lb_config.routing_enabled.value: must be 0 to 100 (percent), found " + found;
  CHECK(error_in("common_lb_config { " + zones + " }") == "common_lb_config." + error);
  CHECK(error_in(list(entry("random.v3.Random", "locality_lb_config { " + zones + " }"))) ==
        kValue + ".locality_lb_config." + error);
}

TEST_CASE("parse_cluster: active_request_bias is 0 or more, by both messages",
          "[xds][parse][least_request][ENV-40]") {
  const auto text = [](const std::string& value) {
    return "active_request_bias { default_value: " + value + " runtime_key: \"k\" }";
  };
  const auto by_message = [&](const std::string& fields) {
    return list(entry("least_request.v3.LeastRequest", fields));
  };
  const auto by_enum = [&](const std::string& fields) {
    return "lb_policy: LEAST_REQUEST least_request_lb_config { " + fields + " }";
  };
  CHECK_FALSE(config_of<LeastRequestConfig>(by_message("")).active_request_bias.has_value());
  for (const auto& [given, bias] :
       std::vector<std::pair<std::string, double>>{{"0", 0}, {"1.5", 1.5}, {"1e9", 1e9}}) {
    CHECK(config_of<LeastRequestConfig>(by_message(text(given))).active_request_bias == bias);
    CHECK(same_config(config_of<WrrLocalityConfig>(by_enum(text(given))).child,
                      make_lb_config(LeastRequestConfig{2, std::nullopt, bias})));
  }
  for (const char* wrong : {"-0.5", "nan", "inf"}) {
    const std::string error =
        std::string(".active_request_bias.default_value: must be 0 or more, and finite, found ") +
        wrong;
    CHECK(error_in(by_message(text(wrong))) == kValue + error);
    CHECK(error_in(by_enum(text(wrong))) == "least_request_lb_config" + error);
  }
}

}  // namespace signalbox::xds
