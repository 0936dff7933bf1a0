// SPDX-License-Identifier: Apache-2.0
//
// gRFC A52, "gRPC xDS Custom Load Balancer Configuration", in the document's order: the policy list
// of a cluster becomes a configuration, and wrr_locality makes a target of each locality.
//
// Not here:
//   - The JSON to which gRPC's xDS client converts a policy list. signalbox converts the list
//     directly to an LbConfig.
//   - "CDS Load Balancer": in the document an aggregate's policy applies to its leaves. A75 changed
//     this: each leaf keeps its own policy (a75_tree_test).
//   - The fields of ring_hash and least_request: a42_ring_hash_test, a48_least_request_test.
//   - A warning about a locality with different weights in two priorities: each priority has a
//     wrr_locality of its own, so no weight is discarded.
//   - GRPC_EXPERIMENTAL_XDS_CUSTOM_LB_CONFIG is not read: load_balancing_policy always counts.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/custom.hpp"
#include "lb/policy_registry.hpp"
#include "lb/tree/wrr_locality.hpp"
#include "messages/lb_config.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {
namespace {

const std::string kSubset = any(
    "type_url: \"type.googleapis.com/envoy.extensions.load_balancing_policies.subset.v3.Subset\"");
const std::string kConfig = "load_balancing_policy.policies[0].typed_extension_config.typed_config";

std::string wrr_locality(const std::string& entries) {
  return entry("wrr_locality.v3.WrrLocality", "endpoint_picking_policy { " + entries + " }");
}

// The options of a runtime in which the program registered this policy.
ParseOptions with_policy(const std::string& name, CustomPolicyParser parser = nullptr) {
  ParseOptions options = all_parse_options();
  options.custom_lb_policies =
      std::make_shared<const CustomPolicyParsers>(CustomPolicyParsers{{name, std::move(parser)}});
  return options;
}

// The policy of a cluster with these fields.
LbConfigPtr policy_of(const std::string& fields,
                      const ParseOptions& options = all_parse_options()) {
  return value_of<Cluster>(parse(fields, options)).lb_policy;
}

const LbConfigPtr kRoundRobinConfig = make_lb_config(RoundRobinConfig{});

LbConfigPtr custom(const std::string& name, const std::string& json) {
  return make_lb_config(CustomConfig{name, json});
}

}  // namespace

// --- "Proposal" --------------------------------------------------------------------------------

SCENARIO("A52: load_balancing_policy replaces lb_policy", "[spec][xds][parse][A52]") {
  GIVEN("a cluster with load_balancing_policy") {
    THEN("it is used whatever lb_policy and its settings say, even when these are invalid") {
      CHECK(same_config(policy_of(list(kRoundRobin) + " lb_policy: RING_HASH"), kRoundRobinConfig));
      CHECK(same_config(policy_of(list(kRoundRobin) + " lb_policy: CLUSTER_PROVIDED"),
                        kRoundRobinConfig));
      CHECK(same_config(policy_of(list(kRoundRobin) +
                                  " lb_policy: RING_HASH ring_hash_lb_config { hash_function: "
                                  "MURMUR_HASH_2 }"),
                        kRoundRobinConfig));
    }
  }
  GIVEN("a cluster without load_balancing_policy") {
    THEN("lb_policy is used as before") {
      CHECK(same_config(policy_of(""), make_lb_config(WrrLocalityConfig{kRoundRobinConfig})));
      CHECK(same_config(policy_of("lb_policy: RING_HASH"), make_lb_config(RingHashConfig{})));
    }
    THEN("an unsupported lb_policy is an error, because it is no list") {
      CHECK(
          error_in("lb_policy: CLUSTER_PROVIDED") ==
          "lb_policy: must be ROUND_ROBIN or RING_HASH or LEAST_REQUEST or RANDOM or MAGLEV where "
          "load_balancing_policy is not set, found CLUSTER_PROVIDED");
    }
  }
}

// --- "XdsClient" -------------------------------------------------------------------------------

SCENARIO("A52: a configuration that its policy cannot parse rejects the cluster",
         "[spec][xds][parse][custom][A52]") {
  GIVEN("a registered policy with a parser") {
    struct Parsed final : CustomPolicyConfig {};

    const auto made = std::make_shared<const Parsed>();
    std::string given;
    absl::StatusOr<CustomPolicyConfigPtr> answer = CustomPolicyConfigPtr(made);
    const ParseOptions options =
        with_policy("com.example.Nearest",
                    [&](const std::string& json) -> absl::StatusOr<CustomPolicyConfigPtr> {
                      given = json;
                      return answer;
                    });
    const std::string fields = list(
        typed_struct("com.example.Nearest", R"(fields { key: "a" value { string_value: "b" } })") +
        kRoundRobin);
    WHEN("the parser accepts the structure") {
      const LbConfigPtr policy = policy_of(fields, options);
      THEN("the parser's result is part of the cluster") {
        CHECK(given == R"({"a":"b"})");
        REQUIRE(std::holds_alternative<CustomConfig>(*policy));
        CHECK(std::get<CustomConfig>(*policy).parsed == made);
      }
    }
    WHEN("the parser refuses the structure") {
      answer = absl::InvalidArgumentError("a: must be a number, found \"b\"");
      THEN("the cluster is rejected with the parser's words, and no later entry is tried") {
        CHECK(error_in(fields, options) ==
              kValue +
                  ": must be a configuration of com.example.Nearest: a: must be a number, found "
                  "\"b\"");
      }
    }
  }
}

// --- "xDS LB Policy Registry" ------------------------------------------------------------------

SCENARIO("A52: policies may be nested sixteen deep", "[spec][xds][parse][A52]") {
  GIVEN("fifteen wrr_locality policies above round_robin") {
    std::string nested = kRoundRobin;
    for (std::size_t depth = 1; depth < 16; ++depth)
      nested = wrr_locality(nested);
    THEN("the cluster is valid") {
      CHECK(error_in(list(nested)).empty());
    }
    WHEN("one more policy is above them") {
      const std::string error = error_in(list(wrr_locality(nested)));
      THEN("the cluster is rejected") {
        CHECK(absl::StrContains(error, "must not be nested deeper than 16 policies"));
      }
    }
  }
}

SCENARIO("A52: the first supported policy of the list is used", "[spec][xds][parse][A52]") {
  struct Row {
    const char* when;
    std::string entries;
    LbConfigPtr policy;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"the list has one policy", kRoundRobin, kRoundRobinConfig},
      {"unsupported policies come first", kSubset + kSubset + kRoundRobin, kRoundRobinConfig},
      {"unsupported policies come first in wrr_locality",
       wrr_locality(kSubset + kRoundRobin),
       make_lb_config(WrrLocalityConfig{kRoundRobinConfig})},
      {"another supported policy comes later",
       entry("ring_hash.v3.RingHash") + kRoundRobin,
       make_lb_config(RingHashConfig{})},
      {"an invalid entry comes later", kRoundRobin + "policies {}", kRoundRobinConfig},
  }));
  GIVEN("a list, and " + std::string(row.when)) {
    THEN("the first supported policy is the cluster's") {
      CHECK(same_config(policy_of(list(row.entries)), row.policy));
    }
  }
}

SCENARIO("A52: each supported type is one policy", "[spec][xds][parse][A52]") {
  struct Row {
    std::string entry;
    LbConfigPtr policy;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {entry(
           "ring_hash.v3.RingHash",
           "hash_function: XX_HASH minimum_ring_size { value: 3 } maximum_ring_size { value: 9 }"),
       make_lb_config(RingHashConfig{3, 9})},
      {entry("round_robin.v3.RoundRobin"), kRoundRobinConfig},
      {wrr_locality(kRoundRobin), make_lb_config(WrrLocalityConfig{kRoundRobinConfig})},
      {entry("least_request.v3.LeastRequest", "choice_count { value: 5 }"),
       make_lb_config(LeastRequestConfig{5})},
      {entry("pick_first.v3.PickFirst", "shuffle_address_list: true"),
       make_lb_config(PickFirstConfig{true})},
  }));
  GIVEN(row.entry) {
    THEN("it is converted with its settings") {
      CHECK(same_config(policy_of(list(row.entry)), row.policy));
    }
  }
}

SCENARIO("A52: a policy that the client lacks is unsupported", "[spec][xds][parse][A52]") {
  GIVEN("a runtime without ring_hash and least_request") {
    const auto type =
        GENERATE(as<std::string>{}, "ring_hash.v3.RingHash", "least_request.v3.LeastRequest");
    WHEN("the list has one of them before round_robin") {
      THEN("round_robin is used") {
        CHECK(same_config(policy_of(list(entry(type) + kRoundRobin), without_policies()),
                          kRoundRobinConfig));
      }
    }
    WHEN("the list has nothing else") {
      THEN("the cluster is rejected") {
        CHECK(error_in(list(entry(type)), without_policies()) ==
              "load_balancing_policy: must name a policy that is supported (pick_first, "
              "round_robin, wrr_locality), found "
              "\"envoy.extensions.load_balancing_policies." +
                  type + "\"");
      }
    }
  }
}

SCENARIO("A52: a TypedStruct of a registered type is a custom policy",
         "[spec][xds][parse][custom][A52]") {
  GIVEN("a program that registered a policy") {
    const ParseOptions options = with_policy("com.example.Nearest");
    WHEN("a TypedStruct names the policy behind the last slash of its type URL") {
      const std::string structure = typed_struct("example/com.example.Nearest",
                                                 R"(fields { key: "b" value { number_value: 2 } }
                      fields { key: "a" value { list_value { values { bool_value: true }
                                                             values { null_value: NULL_VALUE } } } }
                      fields { key: "c" value { struct_value {
                        fields { key: "d" value { string_value: "e" } } } } })");
      THEN("the structure is its configuration, unchanged") {
        CHECK(same_config(
            policy_of(list(structure + kRoundRobin), options),
            custom("com.example.Nearest", R"({"a":[true,null],"b":2.0,"c":{"d":"e"}})")));
      }
      THEN("another runtime, in which the name is not registered, passes the entry over") {
        CHECK(same_config(policy_of(list(structure + kRoundRobin)), kRoundRobinConfig));
        CHECK(same_config(
            policy_of(list(structure + kRoundRobin), with_policy("com.example.Farthest")),
            kRoundRobinConfig));
      }
    }
    WHEN("it is a TypedStruct of the older udpa type, without a value") {
      const std::string structure =
          any("[type.googleapis.com/udpa.type.v1.TypedStruct] { type_url: "
              "\"type.googleapis.com/com.example.Nearest\" }");
      THEN("its configuration is an empty structure") {
        CHECK(
            same_config(policy_of(list(structure), options), custom("com.example.Nearest", "{}")));
      }
    }
    WHEN("the entry is a message of the registered name, and no TypedStruct") {
      const std::string message = any("type_url: \"type.googleapis.com/com.example.Nearest\"");
      THEN("the entry is passed over") {
        CHECK(same_config(policy_of(list(message + kRoundRobin), options), kRoundRobinConfig));
      }
    }
  }
}

SCENARIO("A52: a supported policy that cannot be converted is an error",
         "[spec][xds][parse][A52]") {
  struct Row {
    const char* when;
    std::string entry;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"a ring_hash with another hash function",
       entry("ring_hash.v3.RingHash", "hash_function: MURMUR_HASH_2"),
       ".value.hash_function: "},
      {"a wrr_locality without a child policy",
       entry("wrr_locality.v3.WrrLocality"),
       ".value.endpoint_picking_policy: must be set, found none"},
      {"a wrr_locality with unsupported child policies alone",
       wrr_locality(kSubset),
       ".value.endpoint_picking_policy: must name a policy that is supported (least_request, "
       "maglev, "
       "pick_first, random, random_subsetting, ring_hash, round_robin, weighted_round_robin, "
       "wrr_locality), found "
       "\"envoy.extensions.load_balancing_policies.subset.v3.Subset\""},
      {"a wrr_locality that cannot be decoded",
       any("type_url: \"" + kPolicies + "wrr_locality.v3.WrrLocality\" value: \"\\377\""),
       ".value: must be of type WrrLocality, found 1 bytes that are not"},
      {"an entry without a configuration", "policies {} ", ": must be set, found none"},
  }));
  GIVEN("a list with " + std::string(row.when) + ", and then round_robin") {
    const std::string error = error_in(list(row.entry + kRoundRobin));
    THEN("the cluster is rejected, and round_robin is not tried") {
      INFO(error);
      CHECK(absl::StartsWith(error, kConfig + row.error));
    }
  }
}

SCENARIO("A52: a list without a supported policy is an error", "[spec][xds][parse][A52]") {
  const std::string supported =
      "load_balancing_policy: must name a policy that is supported (least_request, maglev, "
      "pick_first, random, random_subsetting, ring_hash, round_robin, weighted_round_robin, "
      "wrr_locality), found ";
  GIVEN("an empty list") {
    THEN("the cluster is rejected") {
      CHECK(error_in(list("")) == supported + "none");
    }
  }
  GIVEN("a list of unsupported policies") {
    THEN("the cluster is rejected, and the error names them") {
      const std::string subset = "\"envoy.extensions.load_balancing_policies.subset.v3.Subset\"";
      CHECK(error_in(list(kSubset + kSubset)) == supported + subset + ", " + subset);
    }
  }
}

// --- "xDS WRR Locality Load Balancer", "Configuration Example" ---------------------------------

SCENARIO("A52: the document's example, from the cluster to the targets of its localities",
         "[spec][xds][lb][wrr_locality][custom][A52]") {
  GIVEN("wrr_locality with a custom policy and round_robin, in a program with the custom policy") {
    const std::string name = "myorg.MyCustomLeastRequestPolicy";
    const std::string fields = list(wrr_locality(
        typed_struct(name, R"(fields { key: "choiceCount" value { number_value: 2 } })") +
        kRoundRobin));
    const LbConfigPtr policy = policy_of(fields, with_policy(name));
    const LbConfigPtr child = custom(name, R"({"choiceCount":2.0})");
    THEN("the cluster's policy is wrr_locality with the custom policy") {
      CHECK(same_config(policy, make_lb_config(WrrLocalityConfig{child})));
    }
    WHEN("there are endpoints in two localities of weights 1 and 2") {
      Endpoints endpoints;
      Priority& only = endpoints.priorities.emplace_back();
      const LocalityName a{"region_a", "zone_a", "subZone_a"};
      const LocalityName b{"region_b", "zone_b", "subZone_b"};
      only.localities.push_back(std::make_shared<const Locality>(Locality{a, 1, {}}));
      only.localities.push_back(std::make_shared<const Locality>(Locality{b, 2, {}}));
      test::PolicyHarness harness{lb::make_wrr_locality()};
      harness.update(policy, nullptr, std::make_shared<const Endpoints>(endpoints));
      THEN("weighted_target has a target of each locality, with its weight and the custom policy") {
        REQUIRE_FALSE(harness.effects().empty());
        REQUIRE(std::holds_alternative<StartChild>(harness.effects().front()));
        const auto& start = std::get<StartChild>(harness.effects().front());
        const auto& made = std::get<WeightedTargetConfig>(*start.update.config);
        REQUIRE(made.targets.size() == 2);
        const auto& first = made.targets.at(ChildName(to_string(a)));
        const auto& second = made.targets.at(ChildName(to_string(b)));
        CHECK(first.weight == 1);
        CHECK(first.locality == a);
        CHECK(same_config(first.config, child));
        CHECK(second.weight == 2);
        CHECK(second.locality == b);
        CHECK(same_config(second.config, child));
      }
    }
    WHEN("the program has no such policy") {
      THEN("wrr_locality has round_robin, the next policy of the inner list") {
        CHECK(same_config(policy_of(fields), make_lb_config(WrrLocalityConfig{kRoundRobinConfig})));
      }
    }
  }
}

SCENARIO("A52: the policy under a locality is the registered one", "[spec][lb][custom][A52]") {
  GIVEN("a runtime with a factory of one custom policy") {
    std::vector<std::string> made;
    lb::CustomPolicies policies;
    policies["com.example.Nearest"] =
        lb::CustomPolicy{[&made](const CustomConfig& config, lb::PolicyContext) {
                           made.push_back(config.config);
                           return lb::make_wrr_locality();
                         },
                         std::make_shared<const StripedCounters<1>>()};
    lb::PolicyContext context{PolicyPath{"p"}, 1, nullptr};
    context.options.custom = std::make_shared<const lb::CustomPolicies>(std::move(policies));
    WHEN("the tree needs a policy of this name") {
      const auto policy = lb::make_policy(*custom("com.example.Nearest", R"({"a":1.0})"), context);
      THEN("the factory makes it, and is given the configuration") {
        CHECK(policy != nullptr);
        CHECK(made == std::vector<std::string>{R"({"a":1.0})"});
      }
    }
    WHEN("the tree needs a policy of another name") {
      THEN("there is none") {
        CHECK(lb::make_policy(*custom("com.example.Farthest", "{}"), context) == nullptr);
        CHECK(made.empty());
      }
    }
  }
}

}  // namespace signalbox::xds
