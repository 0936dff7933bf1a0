// SPDX-License-Identifier: Apache-2.0
#include "channel/lb_policies.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/policy_registry.hpp"

namespace signalbox::channel::lb_policies_test {
namespace {

struct Empty final : CustomPolicyConfig {};

struct Deaf final : Policy {
  LbEffects step(const LbEvent&, Instant) override { return {}; }
};

CustomLbPolicy policy(std::string name) {
  return {
      .name = std::move(name),
      .parse = [](const std::string&) { return std::make_shared<const Empty>(); },
      .make = [](const CustomPolicyConfigPtr&, PolicyContext) { return std::make_unique<Deaf>(); }};
}

std::string error_of(const std::vector<CustomLbPolicy>& policies) {
  metrics::Instruments instruments;
  const auto registered = register_lb_policies(policies, instruments);
  CHECK((registered.ok() || absl::IsInvalidArgument(registered.status())));
  return std::string(registered.status().message());
}

// Registers a policy with this parser, and returns the parser's result for the JSON text {}.
absl::StatusOr<CustomPolicyConfigPtr> parsed(decltype(CustomLbPolicy::parse) parse) {
  metrics::Instruments instruments;
  CustomLbPolicy own = policy("com.example.One");
  own.parse = std::move(parse);
  return register_lb_policies({own}, instruments)->parsers->at("com.example.One")("{}");
}

}  // namespace

TEST_CASE("lb_policies: those that are registered are parsed and made", "[channel][custom][A52]") {
  metrics::Instruments instruments;
  const auto registered =
      register_lb_policies({policy("com.example.One"), policy("two")}, instruments);
  REQUIRE(registered.ok());
  CHECK(registered->parsers->size() == 2);
  const auto config = registered->parsers->at("two")("{}");
  REQUIRE(config.ok());
  lb::PolicyContext context;
  context.options.custom = registered->policies;
  CHECK(lb::make_policy(CustomConfig{"two", "{}", *config}, context) != nullptr);
  CHECK(lb::make_policy(CustomConfig{"three", "{}"}, context) == nullptr);
}

TEST_CASE("lb_policies: what cannot be registered is named", "[channel][custom][A52]") {
  CHECK(error_of({}).empty());
  CHECK(error_of({policy("")}) == "lb_policies[0].name: must be set, found none");
  CHECK(error_of({policy("a"), policy("b"), policy("a")}) ==
        "lb_policies[2].name: must be unique, found \"a\"");
  for (const char* name : {"round_robin",
                           "priority",
                           "weighted_round_robin",
                           "cds",
                           "ring_hash",
                           "ring_hash_experimental",
                           "envoy.extensions.load_balancing_policies.maglev.v3.Maglev"}) {
    CHECK(error_of({policy(name)}) ==
          std::string("lb_policies[0].name: must be none of signalbox's own, found \"") + name +
              "\"");
  }
  for (const std::string name : {"a/b", "a b", "a\"b", "a\\b", "a\nb", "\xc3\xa4"})
    CHECK(error_of({policy(name)}).rfind("lb_policies[0].name: must be printable", 0) == 0);
  CustomLbPolicy no_parse = policy("a");
  no_parse.parse = nullptr;
  CHECK(error_of({no_parse}) == "lb_policies[0].parse: must be set, found none (a)");
  CustomLbPolicy no_make = policy("a");
  no_make.make = nullptr;
  CHECK(error_of({policy("b"), no_make}) == "lb_policies[1].make: must be set, found none (a)");
}

TEST_CASE("lb_policies: a parser that throws, or makes nothing, refuses", "[channel][custom]") {
  CHECK(parsed([](const std::string&) { return absl::InvalidArgumentError("no"); })
            .status()
            .message() == "no");
  CHECK(
      parsed([](const std::string&) -> CustomPolicyConfigPtr { throw std::runtime_error("oops"); })
          .status()
          .message() == "its parser threw: oops");
  CHECK(parsed([](const std::string&) -> CustomPolicyConfigPtr { throw 7; }).status().message() ==
        "its parser threw");
  CHECK(parsed([](const std::string&) { return nullptr; }).status().message() ==
        "its parser returned no configuration");
}

}  // namespace signalbox::channel::lb_policies_test
