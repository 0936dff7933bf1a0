// SPDX-License-Identifier: Apache-2.0
#include "lb/route/config_selector.hpp"

#include <catch2/catch.hpp>

#include "messages/invariant.hpp"
#include "tests/support/independent_draws.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/step_log.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

std::string chosen(const ConfigSelector& selector, const PickArgs& args) {
  const auto result = selector.select(args);
  const auto* selection = std::get_if<Selection>(&result);
  return selection != nullptr ? selection->cluster->name().str() : "";
}

absl::Status refusal(const ConfigSelector& selector, const PickArgs& args) {
  const auto result = selector.select(args);
  REQUIRE(std::holds_alternative<absl::Status>(result));
  return std::get<absl::Status>(result);
}

TEST_CASE("config_selector: names the clusters that its routes can choose",
          "[lb][config_selector][A31-8]") {
  const XdsConfig config = config_of({route(exact("/s/A"), to("a")),
                                      route(exact("/s/B"), to({{"b", 3}, {"never", 0}})),
                                      route(exact("/s/C"), UnsupportedAction{"redirect"}),
                                      route(prefix(""), to("a"))});
  CHECK(clusters_of(config) == std::set<ClusterName>{ClusterName("a"), ClusterName("b")});
}

TEST_CASE("config_selector: shares calls among weighted clusters", "[lb][config_selector][A31-8]") {
  const XdsConfig config =
      config_of({route(prefix(""), to({{"a", 1}, {"none", 0}, {"b", 3}, {"last", 0}}))});
  const auto selector = make_config_selector(config, refs_for(config));

  constexpr int kCalls = 40'000;
  std::map<std::string, int> share;
  for (std::uint64_t seed = 0; seed < kCalls; ++seed)
    ++share[chosen(*selector, {"/s/M", nullptr, nullptr, seed})];

  CHECK(share["a"] == Approx(kCalls * 0.25).epsilon(0.03));
  CHECK(share["b"] == Approx(kCalls * 0.75).epsilon(0.03));
  CHECK(share["a"] + share["b"] == kCalls);
}

// The fraction and the weights need separate draws. One draw for both would send all calls that the
// fraction lets in to the first cluster.
TEST_CASE("config_selector: calls that a fraction lets in are shared as the weights say",
          "[lb][config_selector][A28][A31-8]") {
  Route half = route(prefix(""), to({{"a", 1}, {"b", 1}}));
  half.match.fraction_per_million = 500'000;
  const XdsConfig config = config_of({half, route(prefix(""), to("rest"))});
  const auto selector = make_config_selector(config, refs_for(config));

  constexpr int kCalls = 40'000;
  std::map<std::string, int> share;
  for (std::uint64_t seed = 0; seed < kCalls; ++seed)
    ++share[chosen(*selector, {"/s/M", nullptr, nullptr, seed})];

  CHECK(share["rest"] == Approx(kCalls * 0.5).epsilon(0.03));
  CHECK(share["a"] == Approx(kCalls * 0.25).epsilon(0.03));
  CHECK(share["b"] == Approx(kCalls * 0.25).epsilon(0.03));
}

TEST_CASE("config_selector: the cluster is drawn independently of the call's other draws",
          "[lb][config_selector][A31-8]") {
  const XdsConfig config = config_of({route(prefix(""), to({{"a", 1}, {"b", 1}}))});
  const auto selector = make_config_selector(config, refs_for(config));
  test::check_independent(Salt::kWeightedCluster, 0.5, [&](std::uint64_t seed) {
    return chosen(*selector, {"/s/M", nullptr, nullptr, seed}) == "a";
  });
}

TEST_CASE("config_selector: weights may sum to the greatest 32-bit number",
          "[lb][config_selector][A28]") {
  const XdsConfig config = config_of({route(prefix(""), to({{"a", 4294967294U}, {"b", 1}}))});
  const auto selector = make_config_selector(config, refs_for(config));
  for (std::uint64_t seed = 0; seed < 1'000; ++seed)
    REQUIRE(chosen(*selector, {"/s/M", nullptr, nullptr, seed}) == "a");
}

TEST_CASE("config_selector: refuses a call that no route takes, and says which",
          "[lb][config_selector][A28][A31-6]") {
  const XdsConfig config = config_of({route(exact("/s/A"), to("a"))});
  const auto selector = make_config_selector(config, refs_for(config));
  const absl::Status status = refusal(*selector, {"/s/Unknown"});

  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("/s/Unknown") && Catch::Contains("orders.host"));
}

TEST_CASE("config_selector: of a path that no route takes it says the first 256 bytes",
          "[lb][config_selector][limits]") {
  const XdsConfig config = config_of({route(exact("/s/A"), to("a"))});
  const auto selector = make_config_selector(config, refs_for(config));
  const auto said = [&](const std::string& path) {
    return std::string(refusal(*selector, {path}).message());
  };
  const std::string longest = "/" + std::string(255, 'a');
  CHECK_THAT(said(longest), Catch::StartsWith("no route for \"" + longest + "\" in virtual host"));
  CHECK_THAT(said(longest + "b"),
             Catch::StartsWith("no route for \"" + longest + "\"… (257 bytes) in virtual host"));
}

TEST_CASE("config_selector: one that only selects explains as it selects, and knows no cookie",
          "[lb][config_selector][explain]") {
  struct Refusing final : ConfigSelector {
    std::variant<Selection, absl::Status> select(const PickArgs& /*args*/) const override {
      return absl::UnavailableError("nowhere");
    }
  };

  const Refusing selector;
  StepLog log;
  const auto told = selector.explain({"/s/M"}, log.trace);
  REQUIRE(std::holds_alternative<absl::Status>(told));
  CHECK(std::get<absl::Status>(told) == absl::UnavailableError("nowhere"));
  CHECK(selector.cookie().empty());
}

TEST_CASE("config_selector: refuses a call whose route does not forward",
          "[lb][config_selector][A28][A31-6]") {
  const XdsConfig config =
      config_of({route(exact("/s/A"), UnsupportedAction{"redirect"}), route(prefix(""), to("a"))});
  const auto selector = make_config_selector(config, refs_for(config));
  const absl::Status status = refusal(*selector, {"/s/A"});

  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(status.message()), Catch::Contains("redirect"));
  CHECK(chosen(*selector, {"/s/B"}) == "a");
}

TEST_CASE("config_selector: gives each route its timeout", "[lb][config_selector][A31-22]") {
  ForwardAction own = to("a");
  own.max_stream_duration = 3s;
  ForwardAction header = to("a");
  header.grpc_timeout_header_max = 4s;
  const XdsConfig config = config_of({route(exact("/s/Own"), own),
                                      route(exact("/s/Header"), header),
                                      route(exact("/s/Default"), to("a"))},
                                     7s);
  const auto selector = make_config_selector(config, refs_for(config));
  const auto timeout = [&](const char* path) {
    return std::get<Selection>(selector->select({path})).timeout;
  };

  CHECK(timeout("/s/Own") == 3s);
  CHECK(timeout("/s/Header") == 4s);
  CHECK(timeout("/s/Default") == 7s);
}

TEST_CASE("config_selector: keeps the references that it leads to", "[lb][config_selector]") {
  const XdsConfig config = config_of({route(prefix(""), to("a"))});
  ClusterRefs refs = refs_for(config);
  const std::weak_ptr<const ClusterRef> ref = refs.begin()->second;
  auto selector = make_config_selector(config, refs);
  refs.clear();

  CHECK(chosen(*selector, {"/s/M"}) == "a");
  selector.reset();
  CHECK(ref.expired());
}

TEST_CASE("config_selector: insists on a reference for each cluster", "[lb][config_selector]") {
  const XdsConfig config = config_of({route(prefix(""), to("a"))});
  CHECK_THROWS_AS(make_config_selector(config, {}), BrokenInvariant);
}

TEST_CASE("config selector: tells the place of the cluster's name among all", "[lb][route]") {
  const XdsConfig config =
      config_of({route(prefix("/a/"), to("one")), route(prefix("/b/"), to("two"))});
  const auto selector = make_config_selector(config, refs_for(config));
  CHECK(std::get<Selection>(selector->select({"/a/M"})).place == 0);
  CHECK(std::get<Selection>(selector->select({"/b/M"})).place == 1);
}

}  // namespace
}  // namespace signalbox::lb
