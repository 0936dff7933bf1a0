// SPDX-License-Identifier: Apache-2.0
//
// signalbox_nightly_plane: the control plane of S14. Its endpoints change all the time.
//
//   a line on stdin ─▶ [plane] ─▶ EDS ─▶ client
//                         └─▶ a line of JSON on stdout
//
//   replace NUMBER         so many endpoints of the cluster "churn" are replaced
//   burst SECONDS RATE     RATE updates a second of the cluster "burst"; each replaces an endpoint
//   record                 responses that were sent, and NACKs
//
// A cluster has the endpoints FIRST to FIRST + SIZE - 1 of its row: endpoint i of "churn" is
// 127.64.0.0 plus i, and of "burst" 127.32.0.0 plus i, modulo 2^21. All have one port, where one
// backend that listens on 0.0.0.0 answers. Answers have FIRST. The targets xds:///churn and
// xds:///burst lead to the clusters. The process ends when its stdin ends.
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tools/child_process.hpp"
#include "tools/control_plane.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::nightly {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr std::uint32_t kChurnBase = 0x7f400000;  // 127.64.0.0
constexpr std::uint32_t kBurstBase = 0x7f200000;  // 127.32.0.0
constexpr std::uint32_t kRow = 1U << 21U;         // Addresses after a base, before they repeat.
constexpr const char* kEndpointsType =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

std::string address_text(std::uint32_t address) {
  return absl::StrCat(address >> 24U,
                      ".",
                      (address >> 16U) & 255U,
                      ".",
                      (address >> 8U) & 255U,
                      ".",
                      address & 255U);
}

struct Cluster {
  std::string name;
  std::uint32_t base;
  std::uint32_t size;
  std::uint32_t port;
  std::uint32_t first = 0;

  xds::ResourceBytes endpoints() const {
    envoy::config::endpoint::v3::ClusterLoadAssignment assignment;
    assignment.set_cluster_name(name);
    auto& locality = *assignment.add_endpoints();
    locality.mutable_locality();
    locality.mutable_load_balancing_weight()->set_value(1);
    for (std::uint32_t i = 0; i < size; ++i) {
      auto& socket = *locality.add_lb_endpoints()
                          ->mutable_endpoint()
                          ->mutable_address()
                          ->mutable_socket_address();
      socket.set_address(address_text(base + (first + i) % kRow));
      socket.set_port_value(port);
    }
    return {kEndpointsType, name, assignment.SerializeAsString()};
  }

  std::string listener_and_cluster() const {
    return absl::StrCat(
        R"(  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: )",
        name,
        R"(
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        route_config:
          virtual_hosts:
            - domains: ["*"]
              routes: [{match: {prefix: ""}, route: {cluster: )",
        name,
        R"(}}]
        http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: )",
        name,
        R"(
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
)");
  }
};

class Plane {
 public:
  Plane(tools::ControlPlane& plane, std::uint32_t churn, std::uint32_t burst, std::uint32_t port)
      : plane_(plane),
        churn_{"churn", kChurnBase, churn, port},
        burst_{"burst", kBurstBase, burst, port} {}

  absl::Status begin() {
    auto resources = xds::parse_resources_text(
        absl::StrCat("resources:\n", churn_.listener_and_cluster(), burst_.listener_and_cluster()),
        xds::Format::kYaml,
        "the plane's own resources");
    if (!resources.ok()) return resources.status();
    resources->push_back(churn_.endpoints());
    resources->push_back(burst_.endpoints());
    plane_.set_resources(*resources);
    return absl::OkStatus();
  }

  Json answer(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    double number = 0;
    double rate = 0;
    words >> word >> number >> rate;
    if (word == "replace") {
      churn_.first += static_cast<std::uint32_t>(number);
      plane_.update({churn_.endpoints()});
      return {{"first", churn_.first}};
    }
    if (word == "burst") return burst(static_cast<int>(number * rate), rate);
    if (word == "record") return record();
    return {{"error", absl::StrCat("there is no command '", line, "'")}};
  }

 private:
  Json burst(int updates, double rate) {
    const auto begun = Clock::now();
    for (int i = 1; i <= updates; ++i) {
      ++burst_.first;
      plane_.update({burst_.endpoints()});
      const auto due = begun + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(i / rate));
      std::this_thread::sleep_for(due - Clock::now());
    }
    const std::chrono::duration<double> took = Clock::now() - begun;
    return {{"updates", updates}, {"first", burst_.first}, {"seconds", took.count()}};
  }

  Json record() const {
    const xds::DiscoveryRecord record = plane_.record();
    int responses = 0;
    for (const auto& stream : record.streams) {
      const auto type = stream.types.find(kEndpointsType);
      if (type != stream.types.end()) responses += type->second.responses;
    }
    return {{"responses", responses},
            {"nacks", record.nacks.size()},
            {"streams", record.streams_opened}};
  }

  tools::ControlPlane& plane_;
  Cluster churn_;
  Cluster burst_;
};

int run(int argc, char** argv) {
  tools::die_with_parent(::getppid());
  CLI::App app{"A control plane of changing endpoints; tests/nightly starts it.",
               "signalbox_nightly_plane"};
  std::uint32_t churn = 100;
  std::uint32_t burst = 100;
  std::uint32_t port = 0;
  app.add_option("--churn", churn, "Endpoints of the cluster churn")->capture_default_str();
  app.add_option("--burst", burst, "Endpoints of the cluster burst")->capture_default_str();
  app.add_option("--port", port, "The backend's port")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto server = tools::ControlPlane::start("127.0.0.1:0");
  if (!server.ok()) {
    std::cerr << "signalbox_nightly_plane: " << server.status().message() << "\n";
    return 1;
  }
  Plane plane(**server, churn, burst, port);
  if (const absl::Status begun = plane.begin(); !begun.ok()) {
    std::cerr << "signalbox_nightly_plane: " << begun.message() << "\n";
    return 1;
  }
  std::cout << Json{{"address", (*server)->address()}}.dump() << "\n" << std::flush;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << plane.answer(line).dump() << "\n" << std::flush;
  return 0;
}

}  // namespace
}  // namespace signalbox::nightly

int main(int argc, char** argv) {
  try {
    return signalbox::nightly::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "signalbox_nightly_plane: " << error.what() << "\n";
    return 1;
  }
}
