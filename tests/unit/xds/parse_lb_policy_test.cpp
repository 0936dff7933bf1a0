// SPDX-License-Identifier: Apache-2.0
//
// The LB policies that a runtime need not have: their configurations, and the result in a runtime
// without them. parse_cluster_test has lists and nesting.
#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/support/parse_options.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kPolicies = "type.googleapis.com/envoy.extensions.load_balancing_policies.";
const std::string kValue =
    "load_balancing_policy.policies[0].typed_extension_config.typed_config.value";

ReceivedResource parse(const std::string& fields,
                       const ParseOptions& options = all_parse_options()) {
  return parse_cluster(
      serialise<ClusterProto>(
          R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + fields),
      options);
}

std::string error_in(const std::string& fields, const ParseOptions& options = all_parse_options()) {
  const std::string error = error_of(parse(fields, options));
  const std::string prefix = R"(CDS resource "orders": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string any(const std::string& typed_config) {
  return "policies { typed_extension_config { typed_config { " + typed_config + " } } } ";
}

std::string entry(const std::string& type, const std::string& config = "") {
  return any("[" + kPolicies + type + "] { " + config + " }");
}

std::string list(const std::string& entries) {
  return "load_balancing_policy { " + entries + " }";
}

std::string typed_struct(const std::string& type, const std::string& fields) {
  return any("[type.googleapis.com/xds.type.v3.TypedStruct] { type_url: \"type.googleapis.com/" +
             type + "\" value { " + fields + " } }");
}

const std::string kRoundRobin = entry("round_robin.v3.RoundRobin");

/// The options of a runtime that has only the mandatory policies.
ParseOptions without_policies() {
  ParseOptions options;
  options.lb_policies = {"pick_first", "round_robin", "wrr_locality"};
  return options;
}

template <typename Config>
Config config_of(const std::string& fields) {
  const LbConfigPtr policy = value_of<Cluster>(parse(fields)).lb_policy;
  REQUIRE(policy != nullptr);
  REQUIRE(std::holds_alternative<Config>(*policy));
  return std::get<Config>(*policy);
}

}  // namespace

TEST_CASE("parse_cluster: an LB policy that the runtime lacks is passed over",
          "[xds][parse][A52]") {
  const auto type =
      GENERATE(as<std::string>{}, "ring_hash.v3.RingHash", "least_request.v3.LeastRequest");
  const LbConfigPtr chosen =
      value_of<Cluster>(parse(list(entry(type) + kRoundRobin), without_policies())).lb_policy;
  CHECK(same_config(chosen, make_lb_config(RoundRobinConfig{})));
  CHECK(error_in(list(entry(type)), without_policies()) ==
        "load_balancing_policy: must name a policy that is supported (pick_first, round_robin, "
        "wrr_locality), found "
        "\"envoy.extensions.load_balancing_policies." +
            type + "\"");
  // One that is there is not passed over, whatever comes behind it.
  CHECK_FALSE(
      same_config(value_of<Cluster>(parse(list(entry(type) + kRoundRobin))).lb_policy, chosen));
}

TEST_CASE("parse_cluster: weighted_round_robin, which signalbox lacks, is passed over",
          "[xds][parse][A52][A58]") {
  const std::string weighted =
      entry("client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin");
  CHECK(same_config(value_of<Cluster>(parse(list(weighted + kRoundRobin))).lb_policy,
                    make_lb_config(RoundRobinConfig{})));
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

TEST_CASE("parse_cluster: an enum whose policy the runtime lacks is an error",
          "[xds][parse][A27][A52]") {
  const auto policy = GENERATE(as<std::string>{}, "RING_HASH", "LEAST_REQUEST");
  CHECK(error_in("lb_policy: " + policy, without_policies()) ==
        "lb_policy: must be ROUND_ROBIN where load_balancing_policy is not set, found " + policy);
  CHECK(error_in("lb_policy: MAGLEV") ==
        "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST where load_balancing_policy "
        "is not set, found MAGLEV");
}

// --- ring_hash ---------------------------------------------------------------------

TEST_CASE("parse_cluster: a ring's sizes, by enum and by list", "[xds][parse][A42]") {
  struct Row {
    std::string sizes;
    std::uint64_t least;
    std::uint64_t most;
  };

  const auto row = GENERATE(values<Row>({
      {"", 1024, 8'388'608},
      {"minimum_ring_size { value: 1 }", 1, 8'388'608},
      {"maximum_ring_size { value: 2048 }", 1024, 2048},
      {"minimum_ring_size { value: 8388608 } maximum_ring_size { value: 8388608 }",
       8'388'608,
       8'388'608},
  }));
  for (const std::string& fields :
       {"lb_policy: RING_HASH ring_hash_lb_config { " + row.sizes + " }",
        list(entry("ring_hash.v3.RingHash", row.sizes)),
        list(entry("ring_hash.v3.RingHash", "hash_function: XX_HASH " + row.sizes))}) {
    CAPTURE(fields);
    const auto config = config_of<RingHashConfig>(fields);
    CHECK(config.min_ring_size == row.least);
    CHECK(config.max_ring_size == row.most);
  }
  CHECK(config_of<RingHashConfig>("lb_policy: RING_HASH").min_ring_size == 1024);
}

TEST_CASE("parse_cluster: a ring that cannot be is an error", "[xds][parse][A42]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"minimum_ring_size {}", ".minimum_ring_size: must be in [1, 8388608], found 0"},
      {"minimum_ring_size { value: 8388609 }",
       ".minimum_ring_size: must be in [1, 8388608], found 8388609; "
       "LIST.minimum_ring_size: must be at most maximum_ring_size, which is 8388608, found "
       "8388609"},
      {"minimum_ring_size { value: 1 } maximum_ring_size {}",
       ".maximum_ring_size: must be in [1, 8388608], found 0; LIST.minimum_ring_size: must be at "
       "most maximum_ring_size, which is 0, found 1"},
      {"maximum_ring_size { value: 8388609 }",
       ".maximum_ring_size: must be in [1, 8388608], found 8388609"},
      {"minimum_ring_size { value: 9 } maximum_ring_size { value: 8 }",
       ".minimum_ring_size: must be at most maximum_ring_size, which is 8, found 9"},
      {"maximum_ring_size { value: 1023 }",
       ".minimum_ring_size: must be at most maximum_ring_size, which is 1023, found 1024 "
       "(its default)"},
      {"minimum_ring_size { value: 1024 } maximum_ring_size { value: 1023 }",
       ".minimum_ring_size: must be at most maximum_ring_size, which is 1023, found 1024"},
      {"hash_function: MURMUR_HASH_2", ".hash_function: must be XX_HASH, found MURMUR_HASH_2"},
      {"hash_function: 9", ".hash_function: must be XX_HASH, found 9"},
  }));
  const auto at = [&](const std::string& place) {
    std::string error = place + row.error;
    const std::size_t mark = error.find("LIST");
    return mark == std::string::npos ? error : error.replace(mark, 4, place);
  };
  CHECK(error_in(list(entry("ring_hash.v3.RingHash", row.fields))) == at(kValue));
  CHECK(error_in("lb_policy: RING_HASH ring_hash_lb_config { " + row.fields + " }") ==
        at("ring_hash_lb_config"));
}

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

// gRPC's own form of the policy, the only one that can name a header.
TEST_CASE("parse_cluster: ring_hash_experimental may hash a header", "[xds][parse][A52][A76]") {
  const auto parsed = [](const std::string& fields) {
    return config_of<RingHashConfig>(list(typed_struct("ring_hash_experimental", fields)));
  };
  const auto field = [](const std::string& name, const std::string& value) {
    return "fields { key: \"" + name + "\" value { " + value + " } } ";
  };
  CHECK(parsed("").request_hash_header.empty());
  CHECK(parsed("").min_ring_size == 1024);
  CHECK(parsed(field("requestHashHeader", "string_value: \"\"")).request_hash_header.empty());
  const auto all = parsed(field("requestHashHeader", "string_value: \"X-Session_1.a\"") +
                          field("minRingSize", "number_value: 8") +
                          field("maxRingSize", "number_value: 8388608"));
  CHECK(all.request_hash_header == "x-session_1.a");
  CHECK(all.min_ring_size == 8);
  CHECK(all.max_ring_size == 8'388'608);
  // A runtime without ring_hash passes the entry over. An entry without a structure is passed over,
  // too.
  const std::string entries = typed_struct("ring_hash_experimental", "") + kRoundRobin;
  CHECK(same_config(value_of<Cluster>(parse(list(entries), without_policies())).lb_policy,
                    make_lb_config(RoundRobinConfig{})));
  CHECK(same_config(
      value_of<Cluster>(parse(list(any("type_url: \"type.googleapis.com/ring_hash_experimental\"") +
                                   kRoundRobin)))
          .lb_policy,
      make_lb_config(RoundRobinConfig{})));
}

TEST_CASE("parse_cluster: a ring_hash_experimental that cannot be is an error",
          "[xds][parse][A42][A76]") {
  struct Row {
    std::string name;
    std::string value;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"requestHashHeader",
       "string_value: \"trace-BIN\"",
       "must not be a binary header (-bin), found \"trace-bin\""},
      {"requestHashHeader",
       "string_value: \"two words\"",
       "must be the name of a header, found \"two words\""},
      {"requestHashHeader",
       "string_value: \":path\"",
       "must be the name of a header, found \":path\""},
      {"requestHashHeader", "number_value: 1", "must be the name of a header, found 1.0"},
      {"minRingSize", "number_value: 0", "must be a whole number in [1, 8388608], found 0.0"},
      {"minRingSize", "number_value: 1.5", "must be a whole number in [1, 8388608], found 1.5"},
      {"maxRingSize",
       "number_value: 8388609",
       "must be a whole number in [1, 8388608], found 8388609.0"},
      {"maxRingSize", "string_value: \"8\"", "must be a whole number in [1, 8388608], found \"8\""},
  }));
  CHECK(error_in(list(typed_struct("ring_hash_experimental",
                                   "fields { key: \"" + row.name + "\" value { " + row.value +
                                       " } }"))) == kValue + "." + row.name + ": " + row.error);
  CHECK(error_in(list(typed_struct("ring_hash_experimental",
                                   "fields { key: \"maxRingSize\" value { number_value: 8 } }"))) ==
        kValue + ".minRingSize: must be at most maxRingSize, which is 8, found 1024 (its default)");
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
}

// --- least_request ------------------------------------------------------------------

TEST_CASE("parse_cluster: least_request draws two to ten", "[xds][parse][A48]") {
  const auto row = GENERATE(table<std::string, std::uint32_t>({
      {"", 2},
      {"choice_count { value: 2 }", 2},
      {"choice_count { value: 10 }", 10},
      {"choice_count { value: 11 }", 10},
      {"choice_count { value: 4294967295 }", 10},
  }));
  const auto& [fields, count] = row;
  CHECK(config_of<LeastRequestConfig>(list(entry("least_request.v3.LeastRequest", fields)))
            .choice_count == count);
  const auto by_enum = config_of<WrrLocalityConfig>(
      "lb_policy: LEAST_REQUEST least_request_lb_config { " + fields + " }");
  CHECK(same_config(by_enum.child, make_lb_config(LeastRequestConfig{count})));
}

TEST_CASE("parse_cluster: least_request of one is an error", "[xds][parse][A48]") {
  const auto count = GENERATE(as<std::string>{}, "0", "1");
  const std::string fields = "choice_count { value: " + count + " }";
  const std::string error = ".choice_count: must be at least 2, found " + count;
  CHECK(error_in(list(entry("least_request.v3.LeastRequest", fields))) == kValue + error);
  CHECK(error_in("lb_policy: LEAST_REQUEST least_request_lb_config { " + fields + " }") ==
        "least_request_lb_config" + error);
}

// --- structures ---------------------------------------------------------------------

TEST_CASE("parse_cluster: a custom policy is a structure under a registered name",
          "[xds][parse][A52]") {
  const std::string custom = typed_struct("example/com.example.Nearest",
                                          R"(fields { key: "b" value { number_value: 2 } }
                      fields { key: "a" value { list_value { values { bool_value: true }
                                                             values { null_value: NULL_VALUE } } } }
                      fields { key: "c" value { struct_value {
                        fields { key: "d" value { string_value: "e" } } } } })");
  ParseOptions options;
  options.custom_lb_policies = std::make_shared<const CustomPolicyParsers>(
      CustomPolicyParsers{{"com.example.Nearest", nullptr}});
  const auto chosen = [&](const std::string& entries) {
    return value_of<Cluster>(parse(list(entries), options)).lb_policy;
  };
  const auto expected = make_lb_config(
      CustomConfig{"com.example.Nearest", R"({"a":[true,null],"b":2.0,"c":{"d":"e"}})"});
  CHECK(same_config(chosen(custom), expected));
  CHECK(same_config(chosen(custom + kRoundRobin), expected));
  // Not registered: passed over.
  CHECK(same_config(value_of<Cluster>(parse(list(custom + kRoundRobin), ParseOptions{})).lb_policy,
                    make_lb_config(RoundRobinConfig{})));
  // The policy is registered, but the value is not a structure, so it cannot be read.
  const std::string message = any("type_url: \"type.googleapis.com/com.example.Nearest\"");
  CHECK(same_config(chosen(message + kRoundRobin), make_lb_config(RoundRobinConfig{})));
  // Without a value it is an empty structure.
  CHECK(same_config(chosen(any("[type.googleapis.com/udpa.type.v1.TypedStruct] { type_url: "
                               "\"type.googleapis.com/com.example.Nearest\" }")),
                    make_lb_config(CustomConfig{"com.example.Nearest", "{}"})));
}

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
  // It may be sent, whatever it is.
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
  const std::string inner = typed_struct("com.example.Nearest", "");
  const auto config =
      value_of<Cluster>(parse(list(entry("wrr_locality.v3.WrrLocality",
                                         "endpoint_picking_policy { " + inner + " }")),
                              options))
          .lb_policy;
  CHECK(same_config(config,
                    make_lb_config(WrrLocalityConfig{
                        make_lb_config(CustomConfig{"com.example.Nearest", "{}"})})));
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

}  // namespace signalbox::xds
