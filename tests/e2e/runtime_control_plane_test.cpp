// SPDX-License-Identifier: Apache-2.0
//
// Streams to the control plane and the subscriptions on them, while the control plane, targets and
// resources come and go.
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/discovery_record.hpp"

namespace signalbox::test {
namespace {

int responses(const DiscoveryRecord& record, absl::string_view type_url) {
  const auto* type = newest(record, type_url);
  return type == nullptr ? 0 : type->responses;
}

}  // namespace

TEST_CASE("runtime: no call notices that the control plane goes and comes back changed",
          "[e2e][runtime][A57][S7]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  const auto plane = start_plane(simple_yaml("orders", "c", {before.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");
  const std::vector<absl::string_view> types{xds::kListenerTypeUrl,
                                             xds::kRouteConfigurationTypeUrl,
                                             xds::kClusterTypeUrl,
                                             xds::kClusterLoadAssignmentTypeUrl};
  for (const auto type : types) {
    REQUIRE(plane->wait_for([&](const DiscoveryRecord& record) { return all_acked(record, type); },
                            kPatience));
  }
  const DiscoveryRecord known = plane->record();
  CHECK(metric(*runtime, "signalbox_xds_connected") == 1.0);

  Traffic traffic(channel, 2);
  plane->stop();
  REQUIRE(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 0.0; }));
  const std::size_t completed = traffic.completed();
  REQUIRE(eventually([&] { return traffic.completed() > completed + 20; }));
  plane->update(resources(endpoints_yaml("c", {{after.address}})));
  REQUIRE(plane->start_again().ok());
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  CHECK(traffic.finish() == std::vector<std::string>{});
  CHECK(metric(*runtime, "signalbox_xds_connected") == 1.0);

  const DiscoveryRecord now = plane->record();
  CHECK(now.open_streams() == 1);
  for (const auto type : types) {
    INFO(type);
    REQUIRE(newest(now, type) != nullptr);
    // Streams are listed in the order of their opening. The second stream begins with the version
    // that the first stream acknowledged last.
    CHECK(newest(now, type)->initial_version == newest(known, type)->acked_version);
    CHECK_FALSE(newest(now, type)->initial_version.empty());
  }
  CHECK(now.nacks.empty());
  CHECK(now.stale_requests == 0);
}

TEST_CASE("runtime: no call notices a control plane that comes and goes", "[e2e][runtime][S9]") {
  const BackendProcess one("one");
  const BackendProcess other("other");
  const auto plane = start_plane(simple_yaml("orders", "c", {one.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  Traffic traffic(channel, 2);
  for (const BackendProcess* next : {&other, &one, &other, &one}) {
    plane->stop();
    REQUIRE(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 0.0; }));
    plane->update(resources(endpoints_yaml("c", {{next->address}})));
    REQUIRE(plane->start_again().ok());
    const std::string expected = next == &one ? "one" : "other";
    CHECK(eventually([&] { return call(channel).cluster == expected; }));
  }
  CHECK(traffic.finish() == std::vector<std::string>{});
  CHECK(plane->record().open_streams() == 1);
  CHECK(plane->record().nacks.empty());
}

TEST_CASE("runtime: the channels of a runtime share one stream, and runtimes do not",
          "[e2e][runtime][A27][A47]") {
  const BackendProcess backend("shared");
  const auto plane = start_plane(simple_yaml("orders", "a", {backend.address}) +
                                 simple_yaml("invoices", "b", {backend.address}));
  const auto first = start_runtime(options_for(plane->address(), "first"));
  const auto orders = first->channel("xds:///orders");
  const auto again = first->channel("xds:///orders");
  const auto invoices = first->channel("xds:///invoices");
  for (const auto& channel : {orders, again, invoices})
    CHECK(call(channel).ok());
  CHECK(plane->record().streams_opened == 1);

  {
    const auto second = start_runtime(options_for(plane->address(), "second"));
    CHECK(call(second->channel("xds:///orders")).ok());
    const DiscoveryRecord record = plane->record();
    REQUIRE(record.open_streams() == 2);
    CHECK(record.streams[0].node_id == "first");
    CHECK(record.streams[1].node_id == "second");
    // The runtimes' metrics do not mix.
    CHECK(metric(*first, "signalbox_rpcs_completed_total") == 3.0);
    CHECK(metric(*second, "signalbox_rpcs_completed_total") == 1.0);
  }
  CHECK(plane->wait_for([](const DiscoveryRecord& record) { return record.open_streams() == 1; },
                        kPatience));
  CHECK(call(orders).ok());
}

TEST_CASE("runtime: a cluster wanted directly and by an aggregate is asked for once, and both hear",
          "[e2e][runtime][A37-10]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  const auto plane = start_plane(
      simple_yaml("direct", "leaf", {before.address}) + listener_yaml("indirect", "indirect") +
      routes_yaml("indirect", "both") + aggregate_yaml("both", {"leaf", "other"}) +
      cluster_yaml("other") + endpoints_yaml("other", {{before.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto direct = runtime->channel("xds:///direct");
  const auto indirect = runtime->channel("xds:///indirect");
  CHECK(call(direct).cluster == "before");
  CHECK(call(indirect).cluster == "before");
  CHECK(plane->record().streams_opened == 1);
  CHECK(newest(plane->record(), xds::kClusterTypeUrl)->names ==
        std::set<std::string>{"both", "leaf", "other"});

  const int sent = responses(plane->record(), xds::kClusterLoadAssignmentTypeUrl);
  plane->update(resources(endpoints_yaml("leaf", {{after.address}})));
  CHECK(eventually([&] { return call(direct).cluster == "after"; }));
  CHECK(eventually([&] { return call(indirect).cluster == "after"; }));
  CHECK(responses(plane->record(), xds::kClusterLoadAssignmentTypeUrl) == sent + 1);
}

TEST_CASE("runtime: a listener that goes serves on, or not, as the bootstrap says",
          "[e2e][runtime][A57][A74][A88]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const bool fails = GENERATE(false, true);
  const auto runtime = start_runtime(data_error_options(plane->address(), fails));
  const auto channel = runtime->channel("xds:///orders");
  CHECK(call(channel).ok());
  plane->remove(xds::kListenerTypeUrl, "orders");
  REQUIRE(plane->wait_for(
      [](const DiscoveryRecord& record) {
        return newest(record, xds::kListenerTypeUrl)->responses == 2 &&
               all_acked(record, xds::kListenerTypeUrl);
      },
      kPatience));
  if (!fails) {
    for (int i = 0; i < 20; ++i)
      CHECK(call(channel).ok());
    return;
  }
  CHECK_THAT(wait_for_failure(channel),
             Catch::Matchers::Contains("LDS resource \"orders\" was deleted"));
  Calls waiting(channel);
  waiting.start(3, {.wait_for_ready = true});
  plane->update(resources(listener_yaml("orders", "orders")));
  for (const Answer& late : waiting.finish()) {
    INFO(late.text());
    CHECK(late.ok());
  }
}

TEST_CASE("runtime: what only a closed channel wanted is unsubscribed", "[e2e][runtime]") {
  const BackendProcess backend("shared");
  const auto plane = start_plane(simple_yaml("orders", "a", {backend.address}) +
                                 simple_yaml("invoices", "b", {backend.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto orders = runtime->channel("xds:///orders");
  auto invoices = runtime->channel("xds:///invoices");
  CHECK(call(orders).ok());
  CHECK(call(invoices).ok());
  const std::vector<std::string> ready_in_b{"cluster=\"b\"", "state=\"ready\""};
  CHECK(eventually([&] { return metric(*runtime, "signalbox_endpoints", ready_in_b) == 1.0; }));
  invoices = nullptr;
  CHECK(plane->wait_for(
      [](const DiscoveryRecord& record) {
        const auto* listeners = newest(record, xds::kListenerTypeUrl);
        const auto* clusters = newest(record, xds::kClusterTypeUrl);
        return listeners->names == std::set<std::string>{"orders"} &&
               clusters->names == std::set<std::string>{"a"};
      },
      kPatience));
  CHECK(eventually([&] { return !metric(*runtime, "signalbox_endpoints", {"cluster=\"b\""}); }));
  CHECK(call(orders).ok());
  CHECK(call(runtime->channel("xds:///invoices")).ok());
}

}  // namespace signalbox::test
