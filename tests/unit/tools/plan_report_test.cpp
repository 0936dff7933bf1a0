// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_report.hpp"

#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "tools/html_page.hpp"
#include "tools/plan_arguments.hpp"
#include "tools/plan_html.hpp"

namespace signalbox::tools {
namespace {

using Catch::Matchers::Contains;

Endpoint endpoint(const std::string& address, HealthStatus health = HealthStatus::kUnknown) {
  return {.addresses = {Address(address)}, .health = health};
}

LocalityPtr locality(const std::string& zone, std::vector<Endpoint> endpoints) {
  return std::make_shared<const Locality>(Locality{{"north", zone, ""}, 1, std::move(endpoints)});
}

lb::PlanLeaf leaf(const std::string& name, std::vector<LocalityPtr> localities) {
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->priorities.push_back({std::move(localities)});
  return {ClusterName(name),
          make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})}),
          std::move(endpoints)};
}

// The cluster "primary" is in the zones a and b, "secondary" in zone c.
lb::PlanInput input() {
  return {ClusterName("orders"),
          true,
          std::nullopt,
          AggregateMode::kPriority,
          {leaf("primary", {locality("a", {endpoint("a:1")}), locality("b", {endpoint("b:1")})}),
           leaf("secondary", {locality("c", {endpoint("c:1")})})}};
}

struct Planned {
  Plan plan;
  PlanView view;
};

Planned planned(const PlanAssumptions& assumptions, const lb::PlanInput& of = input()) {
  auto plan = lb::make_plan(of, assumptions);
  REQUIRE(plan.ok());
  Planned planned{*std::move(plan), {}};
  planned.view.assumptions = assumptions;
  return planned;
}

PlanAssumptions down(const std::string& what) {
  PlanAssumptions assumptions;
  assumptions.down = {what};
  return assumptions;
}

TEST_CASE("plan report: percent without needless digits", "[tools][plan]") {
  CHECK(percent_text(0) == "0");
  CHECK(percent_text(kAllCalls) == "100");
  CHECK(percent_text(333'333) == "33.33");
  CHECK(percent_text(105'000) == "10.5");
  CHECK(percent_text(100'000) == "10");
  CHECK(percent_text(1) == "<0.01");
}

TEST_CASE("plan report: the table has now and then, in both modes", "[tools][plan]") {
  const auto [plan, view] = planned(down("a"));
  CHECK(plan_table(plan, view) == R"(orders: percent of its calls, now and if a is down

              priority (as it runs)   tiered
                 now   then              now   then
primary          100    100 ████████     100     70 █████▋    wrr_locality, round_robin
  priority 0     100    100 ████████     100     70 █████▋    health 100 → 50 × 1.4 = 70
    north/a       50      0               50      0           weight 1
      a:1         50      0               50      0           down
    north/b       50    100 ████████      50     70 █████▋    weight 1
      b:1         50    100 ████████      50     70 █████▋
secondary          0      0                0     30 ██▍       wrr_locality, round_robin
  priority 0       0      0                0     30 ██▍       health 100
    north/c        0      0                0     30 ██▍       weight 1
      c:1          0      0                0     30 ██▍

In priority mode 50 % of the calls would move.
In tiered mode 50 % of the calls would move.
It runs in priority mode, unless its runtime says otherwise.
Flipped to tiered, 30 % of the calls would then go elsewhere.
)");
}

TEST_CASE("plan report: without assumptions there is no then", "[tools][plan]") {
  auto [plan, view] = planned({});
  view.modes = {AggregateMode::kTiered};
  CHECK_THAT(plan_table(plan, view),
             Contains("              tiered\nprimary          100 ████████"));
  CHECK_THAT(plan_table(plan, view), !Contains("then") && !Contains("would move"));
}

TEST_CASE("plan report: notes stand below, on the page as well", "[tools][plan]") {
  auto [plan, view] = planned(down("a"));
  plan.notes = {"cluster x is <missing>"};
  CHECK_THAT(plan_table(plan, view), Contains("\nNote: cluster x is <missing>.\n"));
  CHECK_THAT(plan_html(plan, view), Contains("cluster x is &lt;missing&gt;"));
  CHECK(plan_json(plan, view)["notes"] == nlohmann::json({"cluster x is <missing>"}));
}

TEST_CASE("plan report: calls that fail have a line", "[tools][plan]") {
  PlanAssumptions all;
  all.down = {"a", "b", "c"};
  const auto [plan, view] = planned(all);
  CHECK_THAT(plan_table(plan, view), Contains("\n(none: calls fail)"));
  CHECK_THAT(plan_table(plan, view),
             Contains("In tiered mode 0 % of the calls would move, and 100 % fail."));
  CHECK(plan_json(plan, view)["failing"]["tiered"]["then"] == 100.0);
}

TEST_CASE("plan report: of many endpoints the table has some, the data all", "[tools][plan]") {
  std::vector<Endpoint> many;
  for (int i = 0; i < 20; ++i)
    many.push_back(endpoint("h" + std::to_string(i) + ":1"));
  lb::PlanInput of = input();
  of.leaves = {leaf("primary", {locality("a", many)})};
  const auto [plan, view] = planned({}, of);
  CHECK_THAT(plan_table(plan, view), Contains("… and 4 more") && !Contains("h16:1"));
  CHECK(
      plan_json(plan, view)["clusters"][0]["priorities"][0]["localities"][0]["endpoints"].size() ==
      20);
}

TEST_CASE("plan report: an aggregate's own panic threshold is said", "[tools][plan][ENV-31]") {
  const auto [before, usual] = planned({});
  CHECK_THAT(plan_table(before, usual), !Contains("panics below"));
  lb::PlanInput of = input();
  of.own_panic_threshold = 40;
  const auto [plan, view] = planned({}, of);
  CHECK_THAT(plan_table(plan, view),
             Contains("\nIn tiered mode a priority panics below 40 % of fit endpoints, as its "
                      "common_lb_config says.\n"));
  CHECK(plan_json(plan, view)["panic_threshold"] == 40);
  CHECK(plan_json(plan, view)["panic_threshold_from"] == "cluster");
}

TEST_CASE("plan report: the data", "[tools][plan]") {
  PlanAssumptions assumptions;
  assumptions.health = {{ClusterName("primary"), 0, 50, 10}};
  const auto [plan, view] = planned(assumptions);
  const auto data = plan_json(plan, view);
  INFO(data.dump(2));
  CHECK(data["cluster"] == "orders");
  CHECK(data["is_aggregate"] == true);
  CHECK(data["mode"] == "priority");
  CHECK(data["mode_from"] == "default");
  CHECK(data["panic_threshold"] == 0);
  CHECK(data["panic_threshold_from"] == "default");
  CHECK(data["assumed"] == nlohmann::json::parse(R"({"down": [], "panic_threshold": 0,
    "health": [{"cluster": "primary", "priority": 0, "healthy": 50, "degraded": 10}]})"));
  CHECK(data["failing"]["priority"] == nlohmann::json({{"now", 0.0}, {"then", 0.0}}));
  CHECK(data["flip"]["to"] == "tiered");
  const auto& primary = data["clusters"][0];
  CHECK(primary["name"] == "primary");
  CHECK(primary["lb_policy"] == "wrr_locality, round_robin");
  CHECK(primary["shares"]["tiered"]["then"] == 70.0);
  const auto& priority = primary["priorities"][0];
  CHECK(priority["priority"] == 0);
  CHECK(priority["assumed"] == true);
  CHECK(priority["health"]["then"] == nlohmann::json({{"healthy", 70},
                                                      {"degraded", 14},
                                                      {"healthy_hosts", 50.0},
                                                      {"overprovisioning_factor", 140},
                                                      {"panic", false}}));
  const auto& zone = priority["localities"][1];
  CHECK(zone["region"] == "north");
  CHECK(zone["zone"] == "b");
  CHECK(zone["sub_zone"] == "");
  CHECK(zone["weight"] == 1);
  CHECK(zone["endpoints"][0] == nlohmann::json::parse(R"({"addresses": ["b:1"], "weight": 1,
    "health": "UNKNOWN", "down": false, "shares": {
      "priority": {"now": 50.0, "then": 50.0}, "tiered": {"now": 50.0, "then": 35.0}}})"));
  // If one mode was requested, the data have only that mode.
  const PlanView one{{AggregateMode::kTiered}, assumptions};
  CHECK_FALSE(plan_json(plan, one)["failing"].contains("priority"));
}

TEST_CASE("plan page: names are escaped, nothing is fetched or run", "[tools][plan]") {
  CHECK(escape_html("<b a=\"c\" d='e'>&") == "&lt;b a=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
  lb::PlanInput of = input();
  const std::string evil = "</style><script>alert(\"x\")</script>&'";
  of.cluster = ClusterName(evil);
  of.leaves = {leaf(evil, {locality(evil, {endpoint(evil), endpoint("b:1")})})};
  const auto [plan, view] = planned(down(evil), of);
  const std::string page = plan_html(plan, view);
  CHECK_THAT(page, !Contains("<script") && !Contains("alert(\"") && !Contains("http"));
  CHECK_THAT(page, Contains("&lt;/style&gt;&lt;script&gt;alert(&quot;x&quot;)"));
  CHECK_THAT(page, Contains("prefers-color-scheme: dark"));
}

TEST_CASE("plan report: a score is shown with what it is made of", "[tools][plan][ENV-7]") {
  const auto score = [](std::uint32_t percent) {
    PlanAssumptions assumptions;
    assumptions.health = {{ClusterName("primary"), 0, percent, 0}};
    const auto [plan, view] = planned(assumptions);
    return plan_rows(plan, 1)[1].detail;
  };
  CHECK(score(50) == "health 100 → 50 × 1.4 = 70");
  CHECK(score(90) == "health 100 → 90 × 1.4, at most 100");
  CHECK(score(0) == "health 100 → 0");
  CHECK(score(100) == "health 100");
}

TEST_CASE("plan page: a zone that dies has a segment of its own", "[tools][plan]") {
  const auto [plan, view] = planned(down("a"));
  const std::string page = plan_html(plan, view);
  // Before the fault, each of the two zones of "primary" has half of the calls.
  CHECK_THAT(page,
             Contains("<span class=\"c0\" style=\"width:50.0000%\" title=\"primary, north/a: 50 "
                      "%\">north/a 50 %"));
  CHECK_THAT(page,
             Contains("<span class=\"c0 zone\" style=\"width:70.0000%\" title=\"primary, north/b: "
                      "70 %\">north/b 70 %"));
}

TEST_CASE("plan page: bars of the table have the colour of their cluster", "[tools][plan]") {
  const auto [plan, view] = planned(down("a"));
  const std::string page = plan_html(plan, view);
  CHECK_THAT(page,
             Contains("<div class=\"now\" style=\"width:100.0000%\"></div><div class=\"c0\" "));
  CHECK_THAT(page, Contains("<td class=\"bar\"><div class=\"c1\" style=\"width:30.0000%\">"));
  CHECK_THAT(page, Contains("<i class=\"now\"></i>in the table: the share now"));
  // Without assumptions the table has no bars for the shares now.
  const auto [calm, calm_view] = planned({});
  CHECK_THAT(plan_html(calm, calm_view), !Contains("class=\"now\""));
}

TEST_CASE("plan page: on narrow screens the page says that its table scrolls", "[tools][plan]") {
  const auto [plan, view] = planned({});
  const std::string page = plan_html(plan, view);
  CHECK_THAT(page,
             Contains("<p class=\"hint quiet\">The table scrolls sideways →</p>\n"
                      "<div class=\"scroll\"><table>"));
  CHECK_THAT(page, Contains("\n.scroll { overflow-x: auto;"));
  CHECK_THAT(page, Contains("\n.hint { display: none; }\n"));
  CHECK_THAT(page, Contains("\n@media (max-width: 60rem) { .hint { display: block; } }\n"));
}

TEST_CASE("plan page: twelve clusters have twelve colours", "[tools][plan]") {
  lb::PlanInput of = input();
  of.leaves.clear();
  for (int i = 0; i < 13; ++i)
    of.leaves.push_back(leaf("l" + std::to_string(i), {locality("z", {endpoint("h:1")})}));
  const auto [plan, view] = planned({}, of);
  const std::string page = plan_html(plan, view);
  for (int i = 0; i < 12; ++i) {
    const std::string colour = "c" + std::to_string(i);
    CHECK_THAT(page, Contains("." + colour + " { background: #"));
    CHECK_THAT(page, Contains("<i class=\"" + colour + "\"></i>l" + std::to_string(i) + "<"));
  }
  CHECK_THAT(page, Contains("<i class=\"c0\"></i>l12<"));
}

TEST_CASE("plan page: a part of each bar for each cluster", "[tools][plan]") {
  PlanAssumptions half;
  half.health = {{ClusterName("primary"), 0, 50, 0}};
  const auto [plan, view] = planned(half);
  const std::string page = plan_html(plan, view);
  CHECK_THAT(page,
             Contains("<span class=\"c0\" style=\"width:70.0000%\" title=\"primary: 70 %\">70 %"));
  CHECK_THAT(
      page, Contains("<span class=\"c1\" style=\"width:30.0000%\" title=\"secondary: 30 %\">30 %"));
  CHECK_THAT(page, Contains("Now, and then: if of primary/0 50 % are healthy."));
}

TEST_CASE("plan arguments: a cluster, a priority, a percentage", "[tools][plan]") {
  const auto health = read_health({"orders/0=50", "a/b=c/2=100"}, {"orders/0=20", "late/1=30"});
  REQUIRE(health.ok());
  REQUIRE(health->size() == 3);
  CHECK((*health)[0].leaf.str() == "a/b=c");
  CHECK((*health)[0].priority == 2);
  CHECK((*health)[0].healthy_percent == 100);
  CHECK((*health)[1].leaf.str() == "late");
  CHECK((*health)[1].healthy_percent == 70);
  CHECK((*health)[1].degraded_percent == 30);
  CHECK((*health)[2].healthy_percent == 50);
  CHECK((*health)[2].degraded_percent == 20);

  for (const char* wrong : {"orders",
                            "orders=50",
                            "orders/0",
                            "orders/0=",
                            "orders/=5",
                            "/0=5",
                            "orders/0=101",
                            "orders/0=-1",
                            "orders/-1=5",
                            "orders/x=5",
                            "=5",
                            "orders/0=5x",
                            ""}) {
    const auto refused = read_health({wrong}, {});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().message() ==
          "--health: expected CLUSTER/PRIORITY=PERCENT with 0 to 100 percent, got '" +
              std::string(wrong) + "'");
  }
  CHECK_THAT(std::string(read_health({}, {"a/0=1", "a/0=2"}).status().message()),
             Contains("--degraded: must be said once of each priority, got a/0 twice"));
}

TEST_CASE("plan report: what stays in the caller's zone is said, if the zone is known",
          "[tools][plan][ENV-34]") {
  lb::PlanInput of = input();
  CHECK_THAT(plan_table(planned(down("a"), of).plan, {}), !Contains("caller's zone"));
  CHECK(plan_json(planned(down("a"), of).plan, {})["own_zone"].is_null());
  of.caller = {"north", "a", "rack 4"};
  const auto [plan, view] = planned(down("a"), of);
  CHECK_THAT(
      plan_table(plan, view),
      Contains("\nIn priority mode 50 → 0 % of the calls stay in the caller's zone, north/a.\n"
               "In tiered mode 50 → 0 % of the calls stay in the caller's zone, north/a.\n"));
  CHECK_THAT(plan_html(plan, view), Contains("In tiered mode 50 → 0 % of the calls stay"));
  const auto json = plan_json(plan, view);
  CHECK(json["own_zone"]["priority"]["now"] == 50.0);
  CHECK(json["caller"]["zone"] == "a");
}

TEST_CASE("plan report: --zone has one to three parts", "[tools][plan]") {
  CHECK(*read_zone("a") == LocalityName{"", "a", ""});
  CHECK(*read_zone("north/a") == LocalityName{"north", "a", ""});
  CHECK(*read_zone("north/a/rack 4") == LocalityName{"north", "a", "rack 4"});
  for (const char* wrong : {"", "north/", "/", "a/b/c/d"}) {
    CHECK(read_zone(wrong).status().message() ==
          "--zone: expected ZONE, REGION/ZONE or REGION/ZONE/SUB_ZONE, got '" + std::string(wrong) +
              "'");
  }
}

}  // namespace
}  // namespace signalbox::tools
