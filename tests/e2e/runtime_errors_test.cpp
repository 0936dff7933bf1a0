// SPDX-License-Identifier: Apache-2.0
//
// The error text of a call when the configuration leads nowhere, the endpoints refuse, the control
// plane cannot be reached or is wrong, or its data are invalid or too long; and the recovery.
#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/discovery_record.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

// Checks that the call failed with UNAVAILABLE, and that the error has the target, the node, and
// all of `parts`.
void check_unavailable(const Answer& answer, const std::vector<std::string>& parts) {
  INFO(answer.text());
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(answer.status.error_message(), Contains("xds:///orders"));
  CHECK_THAT(answer.status.error_message(), Contains(kNodeId));
  for (const std::string& part : parts)
    CHECK_THAT(answer.status.error_message(), Contains(part));
}

RuntimeOptions impatient(const std::string& server) {
  RuntimeOptions options = options_for(server);
  options.resource_timeout = std::chrono::milliseconds(200);
  return options;
}

}  // namespace

TEST_CASE("runtime: a response that is too long is refused by the limit's name",
          "[e2e][runtime][limits]") {
  const auto plane = start_plane(simple_yaml("orders", "good", {"127.0.0.1:1"}));
  RuntimeOptions options = impatient(plane->address());
  options.limits.max_message_bytes = 100;
  const auto runtime = start_runtime(std::move(options));
  const Answer answer = call(runtime->channel("xds:///orders"));
  check_unavailable(answer, {"larger than max", "(limit max_message_bytes)"});
}

TEST_CASE("runtime: where a backend stands in the control plane's place, the text asks for it",
          "[e2e][runtime]") {
  const BackendProcess backend("no plane");
  const auto runtime = start_runtime(impatient(backend.address));
  check_unavailable(
      call(runtime->channel("xds:///orders")),
      {"xDS server " + backend.address + ": ", "UNIMPLEMENTED: is this address a control plane?"});
}

TEST_CASE("runtime: what leads nowhere is UNAVAILABLE and says why, until it leads somewhere",
          "[e2e][runtime][A57][A74][A31-6]") {
  struct Case {
    const char* name;
    std::string yaml;
    std::vector<std::string> parts;
  };

  const BackendProcess backend("good");
  const Case which = GENERATE_REF(values<Case>({
      {"no listener", "", {"LDS resource \"orders\"", "did not come within 0.2 s"}},
      {"no routes",
       listener_yaml("orders", "orders"),
       {"RDS resource \"orders\"", "did not come within 0.2 s"}},
      {"no cluster",
       listener_yaml("orders", "orders") + routes_yaml("orders", "good"),
       {"CDS resource \"good\"", "did not come within 0.2 s"}},
      {"no endpoints resource",
       listener_yaml("orders", "orders") + routes_yaml("orders", "good") + cluster_yaml("good"),
       {"EDS resource \"good\"", "did not come within 0.2 s"}},
      {"no endpoints", simple_yaml("orders", "good", {}), {"cluster good", "no endpoints"}},
  }));
  INFO(which.name);
  const auto plane = start_plane(which.yaml);
  const auto runtime = start_runtime(impatient(plane->address()));
  const auto channel = runtime->channel("xds:///orders");

  Calls waiting(channel);
  waiting.start(3, {.wait_for_ready = true});
  check_unavailable(call(channel), which.parts);
  check_unavailable(call(channel), which.parts);
  CHECK(waiting.running() == 3);

  plane->set_resources(resources(simple_yaml("orders", "good", {backend.address})));
  for (const Answer& answer : waiting.finish()) {
    INFO(answer.text());
    CHECK(answer.cluster == "good");
  }
  CHECK(call(channel).cluster == "good");
}

TEST_CASE("runtime: without a control plane calls are UNAVAILABLE, or wait for it",
          "[e2e][runtime][A57][S8]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "good", {backend.address}));
  const std::string address = plane->address();
  plane->stop();
  const auto runtime = start_runtime(options_for(address));
  const auto channel = runtime->channel("xds:///orders");

  Calls waiting(channel);
  waiting.start(3, {.wait_for_ready = true});
  check_unavailable(call(channel), {"LDS resource \"orders\"", address});
  CHECK(metric(*runtime, "signalbox_xds_connected") == 0.0);

  REQUIRE(plane->start_again().ok());
  for (const Answer& answer : waiting.finish()) {
    INFO(answer.text());
    CHECK(answer.cluster == "good");
  }
  CHECK(metric(*runtime, "signalbox_xds_connected") == 1.0);
}

TEST_CASE("runtime: a refused control plane is named in the error", "[e2e][runtime][A57][S8]") {
  const RefusingAddress nobody;
  const auto runtime = start_runtime(options_for(nobody.address()));
  check_unavailable(call(runtime->channel("xds:///orders")),
                    {"LDS resource \"orders\"", nobody.address()});
  const Answer late = call(runtime->channel("xds:///orders"),
                           {.wait_for_ready = true, .timeout = std::chrono::milliseconds(50)});
  CHECK(late.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_CASE("runtime: a server without ADS is asked whether it is a control plane",
          "[e2e][runtime][A57]") {
  const BackendProcess backend("no control plane");
  const auto runtime = start_runtime(options_for(backend.address));
  check_unavailable(call(runtime->channel("xds:///orders")),
                    {"LDS resource \"orders\": xDS server " + backend.address +
                     ": stream closed without a response: UNIMPLEMENTED: is this address a control "
                     "plane?"});
}

TEST_CASE("runtime: a control plane that neither takes nor refuses is given up, and named",
          "[e2e][runtime][A57][S8][slow]") {
  const BlackHole nobody;
  const auto runtime = start_runtime(options_for(nobody.address()));
  const auto channel = runtime->channel("xds:///orders");
  Calls waiting(channel);
  waiting.start(1, {.wait_for_ready = true, .timeout = std::chrono::milliseconds(100)});
  // This call fails when gRPC ends the attempt to connect to the control plane, after 20 s.
  check_unavailable(call(channel), {"LDS resource \"orders\"", nobody.address()});
  CHECK(waiting.finish().front().status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(metric(*runtime, "signalbox_xds_connected") == 0.0);
}

TEST_CASE("runtime: endpoints that refuse are UNAVAILABLE and named", "[e2e][runtime][A61]") {
  const RefusingAddress nobody;
  const auto plane = start_plane(simple_yaml("orders", "down", {nobody.address()}));
  const auto runtime = start_runtime(options_for(plane->address()));
  check_unavailable(call(runtime->channel("xds:///orders")), {nobody.address()});
}

TEST_CASE("runtime: an invalid resource is refused, and what was good serves on",
          "[e2e][runtime][A46][A57][A88]") {
  const BackendProcess good("good");
  const BackendProcess fixed("fixed");
  const auto plane = start_plane(simple_yaml("orders", "c", {good.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "good");
  const std::string accepted = newest(plane->record(), xds::kClusterTypeUrl)->acked_version;

  plane->update(resources(cluster_yaml("c", "", ", connect_timeout: 0s")));
  REQUIRE(plane->wait_for([](const DiscoveryRecord& record) { return !record.nacks.empty(); },
                          kPatience));
  const auto nack = plane->record().nacks.front();
  CHECK(nack.type_url == xds::kClusterTypeUrl);
  CHECK(nack.code == static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  CHECK(nack.version == accepted);
  CHECK_THAT(nack.detail, Contains("c") && Contains("connect_timeout"));
  CHECK(eventually([&] {
    return metric(*runtime, "signalbox_xds_resource_updates_invalid_total", {plane->address()}) ==
           1.0;
  }));
  for (int i = 0; i < 10; ++i)
    CHECK(call(channel).cluster == "good");

  plane->update(resources(cluster_yaml("c", "elsewhere", ", connect_timeout: 3s") +
                          endpoints_yaml("elsewhere", {{fixed.address}})));
  CHECK(eventually([&] { return call(channel).cluster == "fixed"; }));
  CHECK(plane->wait_for(
      [](const DiscoveryRecord& record) { return all_acked(record, xds::kClusterTypeUrl); },
      kPatience));
  CHECK(plane->record().nacks.size() == 1);
}

TEST_CASE("runtime: a resource that was never good says what is wrong with it",
          "[e2e][runtime][A57]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  plane->update(resources(cluster_yaml("c", "", ", connect_timeout: 0s")));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  check_unavailable(call(channel), {"CDS resource \"c\"", "connect_timeout"});
  plane->update(resources(cluster_yaml("c")));
  CHECK(call(channel, {.wait_for_ready = true}).cluster == "good");
}

TEST_CASE("runtime: with control plane and backend gone, the failed call's text says both",
          "[e2e][runtime][A88][A57]") {
  auto backend = std::make_optional<BackendProcess>("good");
  const std::string backend_address = backend->address;
  const auto plane = start_plane(simple_yaml("orders", "c", {backend_address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "good");
  const auto generation = metric(*runtime, "signalbox_config_generation");

  plane->stop();
  REQUIRE(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 0.0; }));
  CHECK(call(channel).cluster == "good");
  backend.reset();
  const std::vector<std::string> both = {backend_address,
                                         "LDS resource \"orders\": xDS server",
                                         "EDS resource \"c\": xDS server",
                                         plane->address()};
  Answer answer;
  REQUIRE(eventually([&] {
    answer = call(channel);
    return std::ranges::all_of(both, [&](const std::string& part) {
      return absl::StrContains(answer.status.error_message(), part);
    });
  }));
  check_unavailable(answer, both);
  // The Pick API reports the same error.
  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  // A call fails as soon as its connection is lost. The picker without the lost endpoint may be
  // published a moment later.
  Pick pick;
  REQUIRE(eventually([&] {
    pick = (*router)->pick({"/s/M", nullptr, 1});
    return !pick.status().ok();
  }));
  INFO(pick.status().ToString());
  for (const std::string& part : both)
    CHECK_THAT(std::string(pick.status().message()), Contains(part));
  CHECK_THAT(std::string(pick.status().message()), Contains("node ID: " + kNodeId));

  // When the control plane is back, its error note disappears without a new configuration.
  REQUIRE(plane->start_again().ok());
  REQUIRE(eventually([&] {
    answer = call(channel);
    return !absl::StrContains(answer.status.error_message(), "xDS server");
  }));
  check_unavailable(answer, {backend_address});
  CHECK(metric(*runtime, "signalbox_config_generation") == generation);
}

TEST_CASE("runtime: a missing cluster is passed over, or fails its aggregate, as the options say",
          "[e2e][runtime][A37-13][D2]") {
  const bool fails = GENERATE(false, true);
  const BackendProcess backend("good");
  const auto plane = start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "all") +
                                 aggregate_yaml("all", {"nowhere", "good"}) + cluster_yaml("good") +
                                 endpoints_yaml("good", {{backend.address}}));
  RuntimeOptions options = impatient(plane->address());
  options.missing_cluster_fails_aggregate = fails;
  const auto runtime = start_runtime(options);
  const Answer answer = call(runtime->channel("xds:///orders"));
  if (fails) {
    check_unavailable(answer,
                      {"underlying cluster nowhere is missing", "did not come within 0.2 s"});
  } else {
    INFO(answer.text());
    CHECK(answer.cluster == "good");
  }
}

}  // namespace signalbox::test
