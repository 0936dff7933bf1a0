// SPDX-License-Identifier: Apache-2.0
//
// Policies of the program's own, written against signalbox/policy.hpp: over a control plane or a
// resource file, to real backends. The example of docs/custom_policy.md is one of them.
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/temporary_folder.hpp"

// The example of docs/custom_policy.md.
signalbox::CustomLbPolicy quorum_policy();

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

// The field load_balancing_policy of the example, indented as a field of a cluster.
std::string quorum_field() {
  std::ifstream file(SIGNALBOX_EXAMPLE_YAML);
  std::stringstream text;
  text << file.rdbuf();
  std::string field;
  for (const absl::string_view line : absl::StrSplit(text.str(), '\n'))
    absl::StrAppend(&field, "    ", line, "\n");
  REQUIRE(absl::StrContains(field, "value: {quorum: 2}"));
  return field;
}

// The cluster "c" with this load_balancing_policy.
std::string cluster_with(const std::string& policy_field) {
  return absl::StrCat(
      "  - \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
      "    name: c\n"
      "    type: EDS\n"
      "    eds_cluster_config: {eds_config: {ads: {}}}\n",
      policy_field);
}

std::string world_yaml(const std::string& policy_field, const std::vector<std::string>& addresses) {
  return listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
         cluster_with(policy_field) + endpoints_yaml("c", {addresses});
}

// --- the fragile policy: wraps round_robin, and throws or breaks a rule when told to by Knobs ---

struct Knobs {
  std::atomic<bool> die_at_next_event{false};
  std::atomic<bool> wrong_order_next{false};
  std::atomic<bool> pickers_throw{false};
  std::atomic<int> made{0};
  std::atomic<int> policies{0};
  std::atomic<int> pickers{0};
};

struct NoConfig final : CustomPolicyConfig {};

class FragilePicker final : public Picker {
 public:
  FragilePicker(PickerPtr child, Knobs& knobs) : child_(std::move(child)), knobs_(knobs) {
    ++knobs_.pickers;
  }

  ~FragilePicker() override { --knobs_.pickers; }

  PickResult pick(const PickArgs& args) const override {
    if (knobs_.pickers_throw) throw std::runtime_error("told to throw");
    return child_->pick(args);
  }

 private:
  PickerPtr child_;
  Knobs& knobs_;
};

class Fragile final : public Policy {
 public:
  explicit Fragile(Knobs& knobs) : knobs_(knobs) {
    ++knobs_.made;
    ++knobs_.policies;
  }

  ~Fragile() override { --knobs_.policies; }

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    if (knobs_.die_at_next_event.exchange(false)) throw std::runtime_error("told to die");
    LbEffects effects;
    if (const auto* update = std::get_if<ConfigUpdated>(&event)) {
      children_.begin(*update);
      children_.update(child_, make_lb_config(RoundRobinConfig{}), update->endpoints, effects);
      publish(effects);
    } else if (const auto* changed = std::get_if<ChildStateChanged>(&event)) {
      if (children_.hear(*changed, effects) != nullptr) publish(effects);
    } else if (const auto* applied = std::get_if<ChildApplied>(&event)) {
      children_.hear(*applied);
    } else if (const auto* died = std::get_if<ChildDied>(&event)) {
      children_.hear(*died);
    }
    if (knobs_.wrong_order_next.exchange(false))
      effects.push_back(ReleaseSubchannel{Address("1.2.3.4:5")});
    children_.report_applied(effects);
    return effects;
  }

 private:
  void publish(LbEffects& effects) {
    const lb::Child& child = *children_.find(child_);
    published_.publish({child.state,
                        child.status,
                        std::make_shared<const FragilePicker>(child.picker, knobs_),
                        children_.generation()},
                       effects);
  }

  const ChildName child_{"child"};
  Knobs& knobs_;
  ChildSet children_;
  Published published_;
};

CustomLbPolicy fragile_policy(Knobs& knobs) {
  return {
      .name = "com.example.Fragile",
      .parse = [](const std::string&) { return std::make_shared<const NoConfig>(); },
      .make = [&knobs](const CustomPolicyConfigPtr&,
                       PolicyContext) { return std::make_unique<Fragile>(knobs); },
  };
}

const char kFragile[] =
    "    load_balancing_policy:\n"
    "      policies:\n"
    "        - typed_extension_config:\n"
    "            name: fragile\n"
    "            typed_config:\n"
    "              \"@type\": type.googleapis.com/udpa.type.v1.TypedStruct\n"
    "              type_url: any.thing/here/com.example.Fragile\n";

// A runtime with the fragile policy (above), and the runtime's log.
struct FragileWorld {
  explicit FragileWorld(const std::vector<std::string>& addresses)
      : plane(start_plane(world_yaml(kFragile, addresses))) {
    RuntimeOptions options = options_for(plane->address());
    options.lb_policies.push_back(fragile_policy(knobs));
    options.log = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      log += text + "\n";
    };
    runtime = start_runtime(std::move(options));
  }

  bool said(const std::string& text) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return absl::StrContains(log, text);
    });
  }

  std::mutex mutex;
  std::string log;
  Knobs knobs;
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
};

bool serves(const std::shared_ptr<grpc::ChannelInterface>& channel, const std::string& cluster) {
  return eventually([&] {
    const Answer answer = call(channel);
    return answer.ok() && answer.cluster == cluster;
  });
}

}  // namespace

TEST_CASE("custom policy: the documents' example runs, and picks real backends",
          "[e2e][custom][A52]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "resources.yaml", "resources:\n" + world_yaml(quorum_field(), {one.address, two.address}));
  const std::string bootstrap = nlohmann::json{{"signalbox.resources", file}}.dump();
  const Finished finished = run_program({"/usr/bin/env",
                                         "GRPC_XDS_BOOTSTRAP=",
                                         "GRPC_XDS_BOOTSTRAP_CONFIG=" + bootstrap,
                                         SIGNALBOX_EXAMPLE});
  CHECK(finished.errors ==
        "signalbox: notice: xds:///orders: connected: 2 endpoints in 1 locality, version 1\n");
  CHECK(finished.status == 0);
  std::map<std::string, int> picked;
  for (const absl::string_view line : absl::StrSplit(finished.output, '\n', absl::SkipEmpty()))
    ++picked[std::string(line)];
  CHECK(picked.size() == 2);
  CHECK(picked[one.address] + picked[two.address] == 20);
}

TEST_CASE("custom policy: serves drop-in calls, and fails them without its quorum",
          "[e2e][custom][A52]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  const RefusingAddress dead;
  const auto plane = start_plane(world_yaml(quorum_field(), {one.address, two.address}));
  RuntimeOptions options = options_for(plane->address());
  options.lb_policies.push_back(quorum_policy());
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  CHECK(serves(channel, "one"));
  CHECK(serves(channel, "two"));
  CHECK(metric(*runtime, "signalbox_policies", {"policy=\"com.example.Quorum\""}) == 1);

  plane->set_resources(resources(world_yaml(quorum_field(), {one.address, dead.address()})));
  CHECK(eventually([&] {
    const Answer answer = call(channel);
    return absl::StrContains(answer.status.error_message(),
                             "quorum: 1 of 2 endpoints are connected");
  }));
}

TEST_CASE("custom policy: a configuration that it refuses is a NACK, and the last good one serves",
          "[e2e][custom][A52]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  const std::string good = world_yaml(quorum_field(), {one.address, two.address});
  const auto plane = start_plane(good);
  RuntimeOptions options = options_for(plane->address());
  options.lb_policies.push_back(quorum_policy());
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  CHECK(serves(channel, "one"));
  const auto generation = metric(*runtime, "signalbox_config_generation");

  plane->set_resources(resources(replaced(good, "{quorum: 2}", "{quorum: two}")));
  const std::string text =
      "CDS resource \"c\": load_balancing_policy.policies[0].typed_extension_config.typed_config."
      "value: must be a configuration of com.example.Quorum: quorum: must be a whole number from 1 "
      "to 1000, found \"two\"";
  CHECK(plane->wait_for(
      [&](const DiscoveryRecord& record) {
        return !record.nacks.empty() && absl::StrContains(record.nacks.back().detail, text);
      },
      kPatience));
  CHECK(eventually([&] {
    return metric(*runtime, "signalbox_config_rejected_total", {"reason=\"semantic\""}) == 1;
  }));
  CHECK(metric(*runtime, "signalbox_config_generation") == generation);
  CHECK(serves(channel, "two"));
}

TEST_CASE("custom policy: who has not registered it takes the next of the list",
          "[e2e][custom][A52]") {
  const BackendProcess one("one");
  const auto plane = start_plane(world_yaml(quorum_field(), {one.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  // The quorum policy would fail this call: it needs two READY endpoints.
  CHECK(serves(channel, "one"));
  CHECK(metric(*runtime, "signalbox_policies", {"policy=\"round_robin\""}) == 1);
}

TEST_CASE("custom policy: one that throws is restarted, and no call notices", "[e2e][custom]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  FragileWorld world({one.address});
  const auto channel = world.runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));
  CHECK(world.knobs.made == 1);
  {
    Traffic traffic(channel, 2);
    // The fragile policy throws when it gets the new endpoints. It is restarted with the endpoints
    // that it had before.
    world.knobs.die_at_next_event = true;
    world.plane->update(resources(endpoints_yaml("c", {{two.address}})));
    CHECK(world.said("told to die"));
    CHECK(eventually([&] { return world.knobs.made == 2; }));
    CHECK(serves(channel, "one"));
    // The policy is also restarted when it releases a subchannel that it does not hold.
    world.knobs.wrong_order_next = true;
    world.plane->update(resources(endpoints_yaml("c", {{one.address, two.address}})));
    CHECK(world.said("I4: it does not hold 1.2.3.4:5"));
    CHECK(eventually([&] { return world.knobs.made == 3; }));
    world.plane->update(resources(endpoints_yaml("c", {{two.address}})));
    CHECK(serves(channel, "two"));
    CHECK(traffic.finish().empty());
  }
  CHECK(world.said("policy com.example.Fragile (xds:///orders/root/c"));
  CHECK(metric(*world.runtime,
               "signalbox_actor_deaths_total",
               {"actor=\"policy\"", "reason=\"exception\""}) == 2);
}

TEST_CASE("custom policy: a picker that throws fails that call alone", "[e2e][custom]") {
  const BackendProcess one("one");
  FragileWorld world({one.address});
  const auto channel = world.runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));
  const std::vector<std::string> label = {"policy=\"com.example.Fragile\""};
  CHECK(metric(*world.runtime, "signalbox_custom_pick_failures_total", label) == 0);

  world.knobs.pickers_throw = true;
  const Answer answer = call(channel);
  CHECK(answer.status.error_code() == grpc::StatusCode::INTERNAL);
  CHECK_THAT(answer.status.error_message(),
             Contains("the picker of custom policy com.example.Fragile threw: told to throw"));
  CHECK(metric(*world.runtime, "signalbox_custom_pick_failures_total", label) == 1);
  world.knobs.pickers_throw = false;
  CHECK(call(channel).cluster == "one");
  CHECK(world.knobs.made == 1);
}

TEST_CASE("custom policy: nothing of it is left when the runtime has ended", "[e2e][custom]") {
  const BackendProcess one("one");
  FragileWorld world({one.address});
  const auto channel = world.runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));
  CHECK(world.knobs.policies == 1);
  CHECK(world.knobs.pickers > 0);
  world.runtime = nullptr;
  CHECK(world.knobs.policies == 0);
  CHECK(world.knobs.pickers == 0);
  CHECK(call(channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("custom policy: one that cannot be registered is an error of start", "[e2e][custom]") {
  RuntimeOptions options = options_for("127.0.0.1:1");
  options.lb_policies = {quorum_policy(), quorum_policy()};
  const auto runtime = Runtime::start(std::move(options));
  CHECK(runtime.status() ==
        absl::InvalidArgumentError(
            "lb_policies[1].name: must be unique, found \"com.example.Quorum\""));
}

}  // namespace signalbox::test
