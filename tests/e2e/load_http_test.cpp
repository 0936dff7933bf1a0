// SPDX-License-Identifier: Apache-2.0
//
// `signalbox load --http` from outside, against HTTP servers that are processes of their own.
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test::load_http_test {
namespace {

constexpr const char* kSessions = R"(
          - name: sessions
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession
              session_state:
                name: cookie
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState
                  cookie: {name: home, path: /})";

// A server of http_backend.py, until the end of the test.
struct Backend {
  Backend() : process(start_program({SIGNALBOX_PYTHON, "-B", SIGNALBOX_HTTP_BACKEND})) {
    const auto line = process.read_line(kPatience);
    REQUIRE(line.ok());
    port = *line;
  }

  ~Backend() { process.send_signal(SIGKILL); }

  tools::ChildProcess process;
  std::string port;
};

std::string cluster(const std::string& name,
                    const std::vector<std::string>& ports,
                    const std::string& more = "") {
  const auto endpoint = [](std::string* out, const std::string& port) {
    absl::StrAppend(out,
                    "\n          - endpoint: {address: {socket_address: {address: 127.0.0.1, "
                    "port_value: ",
                    port,
                    "}}}");
  };
  return absl::StrCat(R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: )",
                      name,
                      R"(
    type: EDS
    eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}})",
                      more,
                      R"(
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: )",
                      name,
                      R"(
    endpoints:
      - locality: {zone: a}
        load_balancing_weight: 1
        lb_endpoints:)",
                      absl::StrJoin(ports, "", endpoint));
}

// The target `shop`. Its calls go to the cluster `shop`.
std::string resources(const std::string& clusters, const std::string& filter = "") {
  return absl::StrCat(R"(
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: shop
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        http_filters:)",
                      filter,
                      R"(
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
        route_config:
          virtual_hosts:
            - domains: ["*"]
              routes: [{match: {prefix: ""}, route: {cluster: shop}}])",
                      clusters,
                      "\n");
}

std::string failover(const std::string& primary, const std::string& secondary) {
  return resources(absl::StrCat(R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: shop
    cluster_type:
      name: envoy.clusters.aggregate
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
        clusters: [primary, secondary])",
                                cluster("primary", {primary}),
                                cluster("secondary", {secondary})));
}

struct HttpLoad {
  TemporaryFolder folder;

  // --max-lateness: see load_command.hpp.
  Finished run(const std::string& url,
               const std::string& resources,
               const std::vector<std::string>& more) const {
    std::vector<std::string> words{SIGNALBOX_PROGRAM,
                                   "load",
                                   "--http",
                                   url,
                                   "--resources",
                                   folder.write("resources.yaml", resources),
                                   "--json",
                                   folder.path("report.json"),
                                   "--max-lateness",
                                   "1h",
                                   "--arrivals",
                                   "even"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  // Writes a script with these acts, in which `primary` is the process of `backend`. Returns its
  // path.
  std::string script(const Backend& backend, const std::string& acts) const {
    const std::string pidfile = folder.write("primary.pid", std::to_string(backend.process.pid()));
    return folder.write(
        "drill.yaml", absl::StrCat("processes: {primary: {pidfile: ", pidfile, "}}\nacts: ", acts));
  }

  nlohmann::json report() const {
    std::ifstream file(folder.path("report.json"));
    return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  nlohmann::json side() const { return report().at("sides").at(0); }
};

}  // namespace

TEST_CASE("load --http: after the primary is killed, the secondary answers and no call fails",
          "[e2e][load][http]") {
  const Backend primary;
  const Backend secondary;
  const HttpLoad load;
  const std::string script =
      load.script(primary, "[{at: 1s, kill: primary}, {at: 2s, mark: failed over}]");
  const Finished finished = load.run("http://shop/orders/7?all=1",
                                     failover(primary.port, secondary.port),
                                     {"--rate", "100", "--duration", "3s", "--script", script});
  INFO(finished.output << finished.errors);
  REQUIRE(finished.status == 0);
  const auto report = load.report();
  CHECK(report.at("configuration").at("target") == "xds:///shop");
  CHECK(report.at("configuration").at("method") == "GET /orders/7?all=1");
  const auto& side = report.at("sides").at(0);
  CHECK(side.at("ok").get<int>() + side.at("failed").get<int>() == 299);
  CHECK(side.at("places").at(1) == nlohmann::json{{"cluster", "primary"}, {"priority", 0}});
  CHECK(side.at("places").at(2) == nlohmann::json{{"cluster", "secondary"}, {"priority", 0}});
  CHECK(side.at("endpoints").at(1).at("address") == "127.0.0.1:" + primary.port);
  CHECK(side.at("endpoints").at(1).at("ok") > 0);
  CHECK(side.at("endpoints").at(2).at("address") == "127.0.0.1:" + secondary.port);
  CHECK(side.at("endpoints").at(2).at("ok") > 100);
  CHECK(side.at("endpoints").at(2).at("failed") == 0);
  CHECK(side.at("faults").at(0).at("first_success_ns").is_number());
  // Only requests that were on their way to the primary may fail: no request is sent twice.
  for (std::size_t bin = 20; bin < side.at("bins").size(); ++bin)
    CHECK(side.at("bins").at(bin).at("codes") ==
          nlohmann::json{{"200", side.at("bins").at(bin).at("sent")}});
}

TEST_CASE("load --http: requests that a killed server had are lost, and are not sent again",
          "[e2e][load][http]") {
  const Backend primary;
  const Backend secondary;
  const HttpLoad load;
  const std::string script = load.script(primary, "[{at: 1s, kill: primary}]");
  const Finished finished = load.run("http://shop/later",
                                     failover(primary.port, secondary.port),
                                     {"--rate", "20", "--duration", "2s", "--script", script});
  INFO(finished.output << finished.errors);
  const auto side = load.side();
  CHECK(side.at("faults").at(0).at("lost") == side.at("failed"));
  CHECK(side.at("failed") > 0);
  CHECK(side.at("endpoints").at(1).at("failed") == side.at("failed"));
  CHECK(side.at("ok").get<int>() + side.at("failed").get<int>() == 39);
}

TEST_CASE("load --http: codes are HTTP statuses, and names of errors", "[e2e][load][http]") {
  struct Row {
    const char* path;
    const char* code;
    bool is_failure;
  };

  const Row row = GENERATE(Row{"/", "200", false},
                           Row{"/status/404", "404", false},
                           Row{"/status/503", "503", true},
                           Row{"/cut", "empty-response", true},
                           Row{"/never", "timeout", true});
  CAPTURE(row.path);
  const Backend backend;
  const HttpLoad load;
  const Finished finished = load.run(absl::StrCat("http://shop", row.path),
                                     resources(cluster("shop", {backend.port})),
                                     {"--rate", "20", "--duration", "1s", "--timeout", "500ms"});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.side();
  CHECK(side.at("codes") == nlohmann::json{{row.code, 19}});
  CHECK(side.at("failed") == (row.is_failure ? 19 : 0));
  CHECK(side.at("messages").empty() == !row.is_failure);
}

TEST_CASE("load --http: the server gets the body, the headers and the host", "[e2e][load][http]") {
  const Backend backend;
  const HttpLoad load;
  const Finished finished = load.run("http://shop/strict?a=b",
                                     resources(cluster("shop", {backend.port})),
                                     {"--rate",
                                      "20",
                                      "--duration",
                                      "1s",
                                      "--header",
                                      "x-load:yes",
                                      "--data-file",
                                      load.folder.write("body", "ping")});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK(load.side().at("codes") == nlohmann::json{{"200", 19}});
  CHECK(load.report().at("configuration").at("method") == "POST /strict?a=b");
}

TEST_CASE("load --http: a session stays on its endpoint when its route has sessions",
          "[e2e][load][http]") {
  const bool has_sessions = GENERATE(true, false);
  CAPTURE(has_sessions);
  const Backend one;
  const Backend other;
  const HttpLoad load;
  const std::string script = load.folder.write("drill.yaml", "acts: [{at: 1s, exec: ['true']}]");
  const Finished finished =
      load.run("http://shop/",
               resources(cluster("shop", {one.port, other.port}), has_sessions ? kSessions : ""),
               {"--rate", "50", "--duration", "2s", "--session", "3", "--script", script});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.side();
  CHECK(side.at("codes") == nlohmann::json{{"200", 99}});
  // Three sessions take turns on two endpoints, so without cookies each session alternates.
  CHECK(side.at("faults").at(0).at("sessions_moved") == (has_sessions ? 0 : 3));
}

TEST_CASE("load --http: outlier detection is told of failed requests", "[e2e][load][http]") {
  const Backend backend;
  const HttpLoad load;
  const Finished finished = load.run("http://shop/status/503",
                                     resources(cluster("shop", {backend.port}, R"(
    outlier_detection:
      interval: 0.1s
      base_ejection_time: 60s
      max_ejection_percent: 100
      failure_percentage_threshold: 50
      enforcing_failure_percentage: 100
      failure_percentage_minimum_hosts: 1
      failure_percentage_request_volume: 5)")),
                                     {"--rate", "100", "--duration", "2s"});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.side();
  CHECK(side.at("codes").at("503") >= 5);
  CHECK(side.at("codes").at("no-pick") >= 50);
}

TEST_CASE("load --http: bad input is an exit status of 2 and a sentence", "[e2e][load][http]") {
  struct Row {
    const char* url;
    std::vector<std::string> more;
    const char* sentence;
  };

  const Row row = GENERATE(
      Row{"http://shop/", {"--call", "a.B/C"}, "--call excludes --http"},
      Row{"http://shop/", {"--target", "xds:///shop"}, "--target excludes --http"},
      Row{"http://shop/", {"--protoset", "/dev/null"}, "--http excludes --protoset"},
      Row{"http://shop/", {"--request", "JUMP"}, "--request: expected one of GET, HEAD, POST,"},
      Row{"http://shop/",
          {"--compare", "grpc"},
          "--compare: gRPC's channel sends no HTTP requests"},
      Row{"http://shop/", {"--header", "x-bin:a\nb"}, "--header: x-bin: HTTP/1.1 takes printable"},
      Row{"https://shop/", {}, "--http: 'https://shop/': https is not supported, only http"},
      Row{"shop/", {}, "--http: 'shop/': expected http://NAME/path"},
      Row{"http:///a", {}, "--http: 'http:///a': the name is missing"},
      Row{"http://unknown/",
          {"--start-timeout", "1s"},
          "side: xds:///unknown was not ready within 1 s"});
  CAPTURE(row.sentence);
  const HttpLoad load;
  const Finished finished = load.run(row.url, resources(cluster("shop", {"1"})), row.more);
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors, Catch::Contains(row.sentence));
}

TEST_CASE("load --http: --request without --http is refused", "[e2e][load][http]") {
  const Finished finished = run_program({SIGNALBOX_PROGRAM, "load", "--request", "POST"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors, Catch::Contains("--request requires --http"));
}

TEST_CASE("load --http: a signal ends requests that are on their way", "[e2e][load][http]") {
  const Backend backend;
  const HttpLoad load;
  auto process = start_program(
      {SIGNALBOX_PROGRAM,
       "load",
       "--http",
       "http://shop/never",
       "--resources",
       load.folder.write("resources.yaml", resources(cluster("shop", {backend.port}))),
       "--json",
       load.folder.path("report.json"),
       "--max-lateness",
       "1h",
       "--timeout",
       "60s",
       "--duration",
       "600s"});
  REQUIRE(eventually([&] {
    process.wait(std::chrono::milliseconds(20)).IgnoreError();  // Reads the streams.
    return process.captured_errors().find("    1 s  | signalbox") != std::string::npos;
  }));
  process.send_signal(SIGINT);
  const Finished finished = finish(process);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 128 + SIGINT);
  CHECK(load.side().at("unanswered") > 0);
}

}  // namespace signalbox::test::load_http_test
