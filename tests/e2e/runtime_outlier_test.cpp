// SPDX-License-Identifier: Apache-2.0
//
// Outlier detection, from the control plane to a backend that answers errors.
#include <atomic>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

/// A backend in this process that accepts calls and fails them until it is healed.
class FailingBackend {
 public:
  const std::string& address() const { return address_; }

  void heal() { service_.fails = false; }

 private:
  struct Service final : demo::v1::Orders::Service {
    grpc::Status Place(grpc::ServerContext* /*context*/,
                       const demo::v1::PlaceRequest* /*request*/,
                       demo::v1::PlaceReply* reply) override {
      if (fails) return {grpc::StatusCode::INTERNAL, "out of order"};
      reply->set_cluster("healed");
      return grpc::Status::OK;
    }

    std::atomic<bool> fails{true};
  };

  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_ = start_server(service_, address_);
};

/// Ejects an endpoint that fails more than half of its calls in an interval in which at least three
/// endpoints had at least five calls each. At most one of three endpoints is ejected.
std::string detecting(const std::string& base_ejection_time) {
  return absl::StrCat(
      ", outlier_detection: {interval: 0.5s, base_ejection_time: ",
      base_ejection_time,
      ", max_ejection_percent: 30, enforcing_success_rate: 0, enforcing_failure_percentage: 100, "
      "failure_percentage_threshold: 50, failure_percentage_minimum_hosts: 3, "
      "failure_percentage_request_volume: 5}");
}

bool served_without_failure(Stub& stub, int calls) {
  for (int i = 0; i < calls; ++i) {
    if (!call(stub).ok()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("runtime: a backend that answers errors is ejected, and serves again after its time",
          "[e2e][runtime][outlier_detection][A50][A61][A91]") {
  FailingBackend bad;
  const BackendProcess first("good");
  const BackendProcess second("good");
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                  cluster_yaml("c", "", detecting("3600s")) +
                  endpoints_yaml("c", {{first.address, bad.address(), second.address}}));
  RuntimeOptions options = options_for(plane->address());
  std::atomic<int> ejections_told = 0;
  options.log_line = [&](const LogLine& line) {
    if (line.kind == LogKind::kEjection && line.level == LogLevel::kWarning) ++ejections_told;
  };
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  Stub stub(channel);
  const std::vector<std::string> of_c = {"cluster=\"c\""};
  const std::vector<std::string> ejected = {"cluster=\"c\"", "state=\"ejected\""};

  // The failing backend gets calls like the others, until it is ejected. Then ten consecutive calls
  // succeed.
  REQUIRE(eventually([&] { return call(stub).status.error_code() == grpc::StatusCode::INTERNAL; }));
  REQUIRE(eventually([&] { return served_without_failure(stub, 10); }));
  CHECK(metric(*runtime,
               "signalbox_outlier_ejections_total",
               {"cluster=\"c\"", "method=\"failure_percentage\"", "enforced=\"true\""}) == 1.0);
  CHECK(metric(*runtime, "signalbox_endpoints", ejected) == 1.0);
  CHECK(metric(*runtime, "signalbox_connections_open", of_c) == 3.0);
  CHECK(served_without_failure(stub, 50));
  CHECK(eventually([&] { return ejections_told == 1; }));

  // The update shortens the ejection time from an hour to 1 ms. New settings also apply to
  // endpoints that are ejected already.
  bad.heal();
  plane->update(resources(cluster_yaml("c", "", detecting("0.001s"))));
  CHECK(eventually([&] { return call(stub).cluster == "healed"; }));
  CHECK(metric(*runtime, "signalbox_endpoints", ejected) == 0.0);
  CHECK(metric(*runtime, "signalbox_connection_attempts_total", of_c) == 3.0);
}

}  // namespace signalbox::test
