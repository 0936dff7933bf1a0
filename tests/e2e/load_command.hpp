// SPDX-License-Identifier: Apache-2.0
//
// Load — a run of `signalbox load` in a test: its files, its command line and its report.
//
//   resources_of(host, port) ─▶ [Load] ─▶ command ─▶ run_program
//                                  └◀─ report.json

#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {

/// Resources of the target xds:///orders, which has one endpoint.
inline std::string resources_of(const std::string& host, int port) {
  return absl::StrCat(R"(
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: orders
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
        route_config:
          virtual_hosts:
            - domains: ["*"]
              routes: [{match: {prefix: ""}, route: {cluster: orders}}]
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: orders
    endpoints:
      - locality: {zone: a}
        load_balancing_weight: 1
        lb_endpoints:
          - endpoint: {address: {socket_address: {address: )",
                      host,
                      ", port_value: ",
                      port,
                      "}}}\n");
}

/// The files of a run, and its command line.
struct Load {
  TemporaryFolder folder;

  std::string write(const std::string& name, const std::string& text) const {
    return folder.write(name, text);
  }

  std::string json_path() const { return folder.path("report.json"); }

  /// With --max-lateness 1h a measurement is valid on a slow machine, too, unless calls are
  /// dropped.
  std::vector<std::string> command(
      const std::string& resources,
      const std::vector<std::string>& more,
      const std::string& call = "signalbox.demo.v1.Orders/Place") const {
    std::vector<std::string> words{SIGNALBOX_PROGRAM,
                                   "load",
                                   "--target",
                                   "xds:///orders",
                                   "--call",
                                   call,
                                   "--resources",
                                   write("resources.yaml", resources),
                                   "--json",
                                   json_path(),
                                   "--max-lateness",
                                   "1h"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  nlohmann::json report() const {
    std::ifstream file(json_path());
    return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  }
};

/// Waits until the load has printed the line of its first second.
inline void await_first_second(tools::ChildProcess& load) {
  REQUIRE(eventually([&] {
    load.wait(std::chrono::milliseconds(20)).IgnoreError();  // Reads the streams.
    return load.captured_errors().find("    1 s  | signalbox") != std::string::npos;
  }));
}

}  // namespace signalbox::test
