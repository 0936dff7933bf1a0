// SPDX-License-Identifier: Apache-2.0
//
// Routes that move between clusters under load: no call notices (gRFC A31). And unusual calls among
// the largest number of routes (gRFC A28).
#include <future>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/generic/generic_stub.h>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/discovery_record.hpp"

namespace signalbox::test {
namespace {

bool subscribes(const DiscoveryRecord& record, absl::string_view type_url, const char* name) {
  const auto* type = newest(record, type_url);
  return type != nullptr && type->names.contains(name);
}

std::size_t failed(const std::vector<Answer>& answers) {
  std::size_t count = 0;
  for (const Answer& answer : answers) {
    if (answer.ok()) continue;
    ++count;
    UNSCOPED_INFO(answer.text());
  }
  return count;
}

}  // namespace

TEST_CASE("runtime: 200 calls in flight outlive the removal of their cluster",
          "[e2e][runtime][A31-14][A31-15]") {
  HoldingBackend old_backend("old");
  const BackendProcess new_backend("new");
  const auto plane = start_plane(simple_yaml("orders", "old", {old_backend.address()}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "old");
  const auto policies = metric(*runtime, "signalbox_policies");
  REQUIRE(policies.has_value());

  CHECK(eventually([&] {
    return metric(*runtime, "signalbox_endpoints", {"cluster=\"old\"", "state=\"ready\""}) == 1.0;
  }));

  Calls calls(channel);
  calls.start(200, {.item = "hold"});
  REQUIRE(eventually([&] { return old_backend.held() == 200; }));

  plane->update(resources(cluster_yaml("new") + endpoints_yaml("new", {{new_backend.address}}) +
                          routes_yaml("orders", "new")));
  int more = 0;
  REQUIRE(eventually([&] { return call(channel).cluster == "new" || ++more == 0; }));
  plane->remove(xds::kClusterTypeUrl, "old");
  plane->remove(xds::kClusterLoadAssignmentTypeUrl, "old");
  REQUIRE(plane->wait_for(
      [](const DiscoveryRecord& record) { return all_acked(record, xds::kClusterTypeUrl); },
      kPatience));
  for (int i = 0; i < 20; ++i)
    CHECK(call(channel).cluster == "new");

  // Running calls refer to the old cluster, so it is still in the policy tree.
  CHECK(calls.running() == 200);
  CHECK(subscribes(plane->record(), xds::kClusterTypeUrl, "old"));
  CHECK(metric(*runtime, "signalbox_policies") > policies);

  old_backend.release();
  const auto answers = calls.finish();
  CHECK(answers.size() == 200);
  CHECK(failed(answers) == 0);
  for (const Answer& answer : answers)
    CHECK(answer.cluster == "old");

  CHECK(plane->wait_for(
      [](const DiscoveryRecord& record) {
        return !subscribes(record, xds::kClusterTypeUrl, "old") &&
               !subscribes(record, xds::kClusterLoadAssignmentTypeUrl, "old");
      },
      kPatience));
  const std::string of_old = "cluster=\"old\"";
  CHECK(eventually([&] { return metric(*runtime, "signalbox_policies") == policies; }));
  CHECK(eventually([&] { return !metric(*runtime, "signalbox_endpoints", {of_old}); }));
  CHECK(eventually(
      [&] { return metric(*runtime, "signalbox_connections_open", {of_old}).value_or(0) == 0; }));
  CHECK(eventually(
      [&] { return metric(*runtime, "signalbox_subchannels", {"state=\"ready\""}) == 1.0; }));
  CHECK(metric(*runtime, "signalbox_rpcs_completed_total", {of_old, "code=\"OK\""}) == 201 + more);
}

TEST_CASE("runtime: a new cluster is routable with the very configuration that names it",
          "[e2e][runtime][A31-7][A31-18][A31-19]") {
  const BackendProcess first("first");
  const BackendProcess second("second");
  const std::vector<std::string> addresses{first.address, second.address};
  const auto plane = start_plane(simple_yaml("orders", "c0", addresses));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());

  Traffic traffic(channel, 3);
  for (int i = 1; i <= 50; ++i) {
    const std::string name = absl::StrCat("c", i);
    plane->update(resources(routes_yaml("orders", name) + cluster_yaml(name) +
                            endpoints_yaml(name, {addresses})));
    const std::string label = absl::StrCat("cluster=\"", name, "\"");
    INFO(name);
    REQUIRE(eventually([&] {
      return metric(*runtime, "signalbox_rpcs_completed_total", {label}).value_or(0) > 0;
    }));
    // Wait until no call to the former cluster is in flight: the client then unsubscribes from it.
    const std::string before = absl::StrCat("c", i - 1);
    REQUIRE(plane->wait_for(
        [&](const DiscoveryRecord& record) {
          return !subscribes(record, xds::kClusterTypeUrl, before.c_str());
        },
        kPatience));
  }
  CHECK(traffic.finish() == std::vector<std::string>{});
  CHECK(plane->record().nacks.empty());
}

TEST_CASE("runtime: odd calls are answered, and clearly, among ten thousand routes",
          "[e2e][runtime][A28][limits]") {
  const BackendProcess backend("orders");
  const std::string place = "{path: /signalbox.demo.v1.Orders/Place, headers: ";
  std::string routes;
  for (int i = 0; i < 9'998; ++i)
    absl::StrAppend(&routes, "{match: {prefix: /s", i, "/}, route: {cluster: orders}}, ");
  absl::StrAppend(&routes,
                  "{match: ",
                  place,
                  "[{name: many, suffix_match: \",v9999\"}]}, redirect: {}}, {match: ",
                  place,
                  "[{name: env, exact_match: \"a,b\"}]}, route: {cluster: orders}}");
  const auto plane = start_plane(
      listener_yaml("orders", "routes") +
      "  - {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: routes, "
      "virtual_hosts: [{name: all, domains: [\"*\"], routes: [" +
      routes + "]}]}\n" + cluster_yaml("orders") + endpoints_yaml("orders", {{backend.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  const CallOptions ordinary{.headers = {{"env", "a"}, {"env", "b"}}};
  CHECK(call(channel, ordinary).cluster == "orders");

  const Answer none = call(channel, {.wait_for_ready = true});
  CHECK(none.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(none.status.error_message(),
             Catch::Contains("no route for \"/signalbox.demo.v1.Orders/Place\" in virtual host "
                             "\"all\""));

  CallOptions many;
  for (int i = 0; i < 10'000; ++i)
    many.headers.emplace_back("many", absl::StrCat("v", i));
  const Answer redirected = call(channel, many);
  CHECK(redirected.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(redirected.status.error_message(),
             Catch::Contains("has an unsupported action: redirect"));

  grpc::TemplatedGenericStub<demo::v1::PlaceRequest, demo::v1::PlaceReply> generic(channel);
  grpc::ClientContext context;
  const demo::v1::PlaceRequest request;
  demo::v1::PlaceReply reply;
  std::promise<grpc::Status> answered;
  generic.UnaryCall(&context,
                    "/" + std::string(std::size_t{1} << 20U, 'a'),
                    {},
                    &request,
                    &reply,
                    [&](grpc::Status status) { answered.set_value(std::move(status)); });
  const grpc::Status status = answered.get_future().get();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(status.error_message(),
             Catch::Contains("no route for \"/aaa") &&
                 Catch::Contains("a\"… (1048577 bytes) in virtual host"));
  CHECK(status.error_message().size() < 1'000);

  CHECK(call(channel, ordinary).cluster == "orders");
}

}  // namespace signalbox::test
