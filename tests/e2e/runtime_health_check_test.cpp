// SPDX-License-Identifier: Apache-2.0
//
// Active health checks, from CDS to the calls that go elsewhere.
#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>
#include <grpcpp/health_check_service_interface.h>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/talking_socket.hpp"

namespace signalbox::test {
namespace {

/// A backend in this process with a health service that the test controls.
class CheckedBackend {
 public:
  explicit CheckedBackend(std::string cluster) {
    service_.cluster = std::move(cluster);
    grpc::EnableDefaultHealthCheckService(true);
    server_ = start_server(service_, address_);
    grpc::EnableDefaultHealthCheckService(false);
    REQUIRE(server_->GetHealthCheckService() != nullptr);
  }

  const std::string& address() const { return address_; }

  void be_fit(bool fit) { server_->GetHealthCheckService()->SetServingStatus(fit); }

 private:
  struct Service final : demo::v1::Orders::Service {
    grpc::Status Place(grpc::ServerContext* /*context*/,
                       const demo::v1::PlaceRequest* /*request*/,
                       demo::v1::PlaceReply* reply) override {
      reply->set_cluster(cluster);
      return grpc::Status::OK;
    }

    std::string cluster;
  };

  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

std::string checked_by(const std::string& probe) {
  return absl::StrCat(
      ", health_checks: [{timeout: 5s, interval: 0.1s, unhealthy_threshold: 1, "
      "healthy_threshold: 1, ",
      probe,
      "}]");
}

/// As endpoints_yaml(), but each endpoint is probed at a port of its own.
std::string probed_elsewhere_yaml(const std::string& service,
                                  std::vector<std::pair<std::string, int>> endpoints) {
  std::vector<std::string> addresses;
  addresses.reserve(endpoints.size());
  for (const auto& [address, port] : endpoints)
    addresses.push_back(address);
  std::string yaml = endpoints_yaml(service, {addresses});
  for (const auto& [address, port] : endpoints) {
    const std::string end = absl::StrCat(address.substr(address.rfind(':') + 1), "}}");
    yaml =
        replaced(yaml, end, absl::StrCat(end, ", health_check_config: {port_value: ", port, "}"));
  }
  return yaml;
}

/// Makes up to `calls` calls. True if the backend named `cluster` answers all of them.
bool all_from(Stub& stub, const std::string& cluster, int calls = 10) {
  for (int i = 0; i < calls; ++i) {
    if (call(stub).cluster != cluster) return false;
  }
  return true;
}

bool some_from(Stub& stub, const std::string& cluster) {
  return eventually([&] { return call(stub).cluster == cluster; });
}

const std::vector<std::string> kOfC = {"cluster=\"c\""};
const std::vector<std::string> kUnhealthy = {"cluster=\"c\"", "state=\"unhealthy\""};

/// Checks that the backend "first" gets no calls once it fails its probes, and gets calls again
/// once it passes them. `set` makes it pass or fail the probes, of whatever kind they are.
void check_leaves_and_returns(Runtime& runtime,
                              Stub& stub,
                              const std::function<void(bool fit)>& set) {
  REQUIRE(some_from(stub, "first"));
  REQUIRE(some_from(stub, "second"));
  set(false);
  REQUIRE(eventually([&] { return all_from(stub, "second"); }));
  // The picker is published first, and the metric after that.
  const auto unhealthy = [&] { return metric(runtime, "signalbox_endpoints", kUnhealthy); };
  CHECK(eventually([&] { return unhealthy() == 1.0; }));
  CHECK(metric(runtime, "signalbox_connections_open", kOfC) == 2.0);
  CHECK(all_from(stub, "second", 50));
  set(true);
  CHECK(some_from(stub, "first"));
  CHECK(eventually([&] { return unhealthy() == 0.0; }));
  CHECK(metric(runtime, "signalbox_connection_attempts_total", kOfC) == 2.0);
  CHECK(metric(runtime, "signalbox_health_probes_total", {"cluster=\"c\"", "result=\"failure\""})
            .value_or(0) >= 1.0);
}

}  // namespace

TEST_CASE("runtime: who fails its probes gets no calls, keeps its connection, and comes back",
          "[e2e][runtime][health_check][A61]") {
  CheckedBackend first("first");
  CheckedBackend second("second");
  const std::string routes = listener_yaml("orders", "orders") + routes_yaml("orders", "c");
  SECTION("by gRPC") {
    const auto plane =
        start_plane(routes + cluster_yaml("c", "", checked_by("grpc_health_check: {}")) +
                    endpoints_yaml("c", {{first.address(), second.address()}}));
    const auto runtime = start_runtime(options_for(plane->address()));
    Stub stub(runtime->channel("xds:///orders"));
    check_leaves_and_returns(*runtime, stub, [&](bool fit) { first.be_fit(fit); });
  }
  const std::string fit_says = "HTTP/1.1 200 OK\r\n\r\n";
  TalkingSocket beside_first(fit_says, "\r\n\r\n");
  TalkingSocket beside_second(fit_says, "\r\n\r\n");
  const std::string endpoints = probed_elsewhere_yaml(
      "c", {{first.address(), beside_first.port()}, {second.address(), beside_second.port()}});
  SECTION("by HTTP") {
    const auto plane = start_plane(
        routes + cluster_yaml("c", "", checked_by("http_health_check: {path: /up}")) + endpoints);
    const auto runtime = start_runtime(options_for(plane->address()));
    Stub stub(runtime->channel("xds:///orders"));
    check_leaves_and_returns(*runtime, stub, [&](bool fit) {
      beside_first.say(fit ? fit_says : "HTTP/1.1 503 Service Unavailable\r\n\r\n");
    });
  }
  SECTION("by TCP") {
    const auto plane =
        start_plane(routes + cluster_yaml("c", "", checked_by("tcp_health_check: {}")) + endpoints);
    const auto runtime = start_runtime(options_for(plane->address()));
    Stub stub(runtime->channel("xds:///orders"));
    check_leaves_and_returns(
        *runtime, stub, [&](bool fit) { fit ? beside_first.listen() : beside_first.close(); });
  }
}

TEST_CASE("runtime: with no endpoint fit its priority is left, and without one calls say why",
          "[e2e][runtime][health_check][A56]") {
  CheckedBackend first("first");
  CheckedBackend second("second");
  const auto plane = start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                                 cluster_yaml("c", "", checked_by("grpc_health_check: {}")) +
                                 endpoints_yaml("c", {{first.address()}, {second.address()}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Stub stub(channel);
  REQUIRE(some_from(stub, "first"));
  first.be_fit(false);
  REQUIRE(eventually([&] { return all_from(stub, "second"); }));
  second.be_fit(false);
  CHECK(eventually([&] {
    return wait_for_failure(channel).find("health check failed: the server does not say SERVING") !=
           std::string::npos;
  }));
  first.be_fit(true);
  CHECK(some_from(stub, "first"));
}

TEST_CASE("runtime: health checks may be off, as in gRPC", "[e2e][runtime][health_check]") {
  CheckedBackend first("first");
  first.be_fit(false);
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                  cluster_yaml("c", "", ", health_checks: [{grpc_health_check: {}}]") +
                  endpoints_yaml("c", {{first.address()}}));
  RuntimeOptions options = options_for(plane->address());
  options.active_health_checks = false;
  const auto runtime = start_runtime(std::move(options));
  Stub stub(runtime->channel("xds:///orders"));
  CHECK(some_from(stub, "first"));
  CHECK(metric(*runtime, "signalbox_health_probes_total") == std::nullopt);
}

TEST_CASE("runtime: while health checks flap, no call with a retry policy is lost",
          "[e2e][runtime][health_check][retry]") {
  CheckedBackend first("first");
  CheckedBackend second("second");
  CheckedBackend last("last");
  const auto plane = start_plane(
      listener_yaml("orders", "orders") +
      routes_yaml("orders", "c", ", retry_policy: {retry_on: \"unavailable\", num_retries: 4}") +
      cluster_yaml("c", "", checked_by("grpc_health_check: {}")) +
      endpoints_yaml("c", {{first.address(), second.address()}, {last.address()}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Stub stub(channel);
  REQUIRE(some_from(stub, "first"));
  Traffic traffic(channel, 2);
  std::mt19937 chance(7);
  for (int round = 0; round < 12; ++round) {
    const unsigned fit = chance() % 4;
    const bool keeps_any = fit != 0;
    first.be_fit((fit & 1U) != 0);
    second.be_fit((fit & 2U) != 0);
    const double unfit = 2 - ((fit & 1U) + (fit >> 1U));
    REQUIRE(
        eventually([&] { return metric(*runtime, "signalbox_endpoints", kUnhealthy) == unfit; }));
    if (!keeps_any) CHECK(eventually([&] { return call(stub).cluster == "last"; }));
  }
  CHECK(traffic.finish().empty());
  CHECK(traffic.completed() > 0);
}

TEST_CASE("runtime: while health checks flap in tiered mode, loads are of 100, and no call is lost",
          "[e2e][runtime][health_check][retry][tiered][ENV-14][ENV-24]") {
  CheckedBackend first("first");
  CheckedBackend second("second");
  CheckedBackend last("last");
  const auto plane = start_plane(
      listener_yaml("orders", "orders") +
      routes_yaml("orders", "both", ", retry_policy: {retry_on: \"unavailable\", num_retries: 4}") +
      aggregate_yaml("both", {"primary", "secondary"}) +
      cluster_yaml("primary", "", checked_by("grpc_health_check: {}")) + cluster_yaml("secondary") +
      endpoints_yaml("primary", {{first.address(), second.address()}}) +
      endpoints_yaml("secondary", {{last.address()}}));
  RuntimeOptions options = options_for(plane->address());
  options.aggregate_mode = AggregateMode::kTiered;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  Stub stub(channel);
  REQUIRE(some_from(stub, "first"));
  const auto load = [&](const std::string& leaf) {
    return metric(*runtime,
                  "signalbox_tier_load_percent",
                  {"cluster=\"both\"", "leaf=\"" + leaf + "\"", "priority=\"0\""});
  };
  Traffic traffic(channel, 2);
  std::mt19937 chance(7);
  for (int round = 0; round < 12; ++round) {
    const unsigned fit = chance() % 4;
    first.be_fit((fit & 1U) != 0);
    second.be_fit((fit & 2U) != 0);
    const unsigned healthy = (fit & 1U) + (fit >> 1U);
    const double score = std::min(100U, 140 * healthy / 2);
    INFO(healthy << " of 2 are healthy");
    REQUIRE(eventually([&] { return load("primary") == score; }));
    CHECK(eventually([&] { return load("secondary") == 100 - score; }));
  }
  CHECK(traffic.finish().empty());
  CHECK(traffic.completed() > 0);
}

}  // namespace signalbox::test
