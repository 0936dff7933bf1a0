// SPDX-License-Identifier: Apache-2.0
//
// The `signalbox` command from outside: its output and its exit status.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::test {
namespace {

const std::string kProgram = SIGNALBOX_PROGRAM;
const std::string kConf = SIGNALBOX_CONF;

const std::string kZones = kConf + "/plan/zones.yaml";

constexpr const char* kOneCluster = R"(
resources:
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    eds_cluster_config: {eds_config: {ads: {}}}
)";

// Whether a help text names a default. CLI11 writes it "=30" before version 2.4, and "[30]" since.
bool has_default(const std::string& help, const std::string& value) {
  return absl::StrContains(help, absl::StrCat("=", value)) ||
         absl::StrContains(help, absl::StrCat("[", value, "]"));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Finished run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kProgram);
  return run_program(arguments);
}

tools::ChildProcess start(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kProgram);
  return start_program(arguments);
}

// The line that a backend or a control plane writes when it is ready.
nlohmann::json ready_line(tools::ChildProcess& process) {
  const auto line = process.read_line(kPatience);
  INFO(line.status().ToString() << " " << process.captured_errors());
  REQUIRE(line.ok());
  return nlohmann::json::parse(*line);
}

}  // namespace

// Runs a command that must end with `status`. Returns what it wrote to stdout and stderr.
std::string refusal(const std::vector<std::string>& arguments, int status) {
  const Finished finished = run(arguments);
  CHECK(finished.status == status);
  return finished.output + finished.errors;
}

TEST_CASE("signalbox: wrong usage ends with 2 and says what is wrong", "[e2e][tools]") {
  struct Row {
    std::vector<std::string> arguments;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {{}, "subcommand is required"},
      {{"fly"}, "there is no command 'fly'"},
      {{"demo", "--seconds", "soon"}, "--seconds: expected a number from 4 to 3600, got 'soon'"},
      {{"demo", "--seconds", "1"}, "--seconds: expected a number from 4 to 3600, got '1'"},
      {{"demo", "--rps", "0"}, "--rps"},
      {{"demo", "--seed", "-1"}, "--seed: expected a whole number of 0 or more, got '-1'"},
      {{"demo", "--drill", "backends"},
       "--drill: expected control-plane or tiered, got 'backends'"},
      {{"demo", "--kill-seconds", "5"}, "--kill-seconds requires --drill"},
      {{"demo", "--drill", "tiered", "--kill-seconds", "5"},
       "--kill-seconds: is of --drill control-plane, got --drill tiered"},
      {{"demo", "--fast"}, "there is no option '--fast'"},
      {{"--fast"}, "there is no option '--fast'"},
      {{"check", "--fast"}, "there is no option '--fast'"},
      {{"demo", "--metrics", "9464"}, "--metrics: expected host:port, got '9464'"},
      {{"demo", "--metrics", "127.0.0.1:65536"}, "--metrics: expected host:port"},
      {{"demo", "--metrics-detail", "call"},
       "--metrics-detail: call not in {cluster,endpoint,none}"},
      {{"demo", "--metrics-buckets", "many"}, "--metrics-buckets: many not in {short,grpc}"},
      {{"serve", "--resources", "r.yaml", "--listen", "here"}, "--listen: expected host:port"},
      {{"serve", "--resources", "r.yaml", "--listen", "18000"}, "--listen: expected host:port"},
      {{"serve", "--resources", "r.yaml", "--listen", ":18000"}, "--listen: expected host:port"},
      {{"serve", "--resources", "r.yaml", "--listen", "::18000"}, "--listen: expected host:port"},
      {{"demo", "--json", "/no/such/folder/result.json"}, "--json /no/such/folder/result.json"},
      {{"demo", "--resources", "/no/such/file.yaml"}, "/no/such/file.yaml"},
      {{"serve"}, "--resources is required"},
      {{"serve", "--resources", "/no/such/file.yaml"}, "/no/such/file.yaml"},
      {{"demo", "--admin", "0.0.0.0:9901"}, "'0.0.0.0' is no loopback address"},
      {{"dump"}, "--admin is required"},
      {{"dump", "--admin", "here"}, "expected unix:PATH, or HOST:PORT of the loopback"},
      {{"dump", "--admin", "unix:no-such.sock"}, "there is no such socket; is the process running"},
      {{"dump", "--admin", "unix:s", "--type", "XDS"}, "--type"},
      {{"dump", "--admin", "unix:s", "--timeout", "0"}, "expected a number from 0.1 to 3600"},
      {{"ready"}, "--admin is required"},
      {{"ready", "--admin", "unix:s", "--target", "orders"}, "--target: expected xds:///NAME"},
      {{"replay"}, "FILE is required"},
      {{"replay", "/no/such/file.rec"}, "/no/such/file.rec"},
      {{"replay", "f", "--header", "a:b"}, "--header requires --explain"},
      {{"replay", "f", "--json", "--diff", "g"}, "--json excludes --diff"},
      {{"explain"}, "--target is required"},
      {{"explain", "--target", "xds:///a", "--method", "/m"}, "--admin or --resources is required"},
      {{"explain",
        "--admin",
        "unix:s",
        "--resources",
        "f",
        "--target",
        "xds:///a",
        "--method",
        "/m"},
       "--admin"},
      {{"explain", "--admin", "unix:s", "--target", "orders", "--method", "/m"},
       "--target: expected xds:///NAME, got 'orders'"},
      {{"explain", "--admin", "unix:s", "--target", "xds:///a", "--method", "m"},
       "--method: expected /package.Service/Method, got 'm'"},
      {{"explain", "--admin", "unix:s", "--target", "xds:///a", "--method", "/m", "--header", "x"},
       "--header: header: expected name:value"},
      {{"explain", "--admin", "unix:s", "--target", "xds:///a", "--method", "/m", "--seed", "-1"},
       "--seed: expected a whole number"},
      {{"explain", "--admin", "unix:no-such.sock", "--target", "xds:///a", "--method", "/m"},
       "there is no such socket; is the process running"},
      {{"explain", "--resources", "/no/such/file.yaml", "--target", "xds:///a", "--method", "/m"},
       "/no/such/file.yaml"},
      {{"explain",
        "--resources",
        kConf + "/demo/resources.yaml",
        "--target",
        "xds:///a",
        "--method",
        "/m"},
       "'xds:///a' is not in "},
      {{"explain",
        "--resources",
        kConf + "/demo/resources.yaml",
        "--target",
        "xds:///a",
        "--method",
        "/m"},
       "there are: xds:///orders"},
      {{"explain",
        "--resources",
        kConf + "/demo/resources.yaml",
        "--target",
        "xds:///orders",
        "--method",
        "/m",
        "--cookie",
        "secret"},
       "cookie: expected name=value"},
      {{"plan"}, "--resources is required"},
      {{"plan", "--resources", "/no/such/file.yaml"}, "/no/such/file.yaml"},
      {{"plan", "--resources", kZones, "--down", "zone-d"},
       "there is no zone or endpoint 'zone-d'; zones: north/zone-a, north/zone-b, north/zone-c, "
       "zone-a, zone-b, zone-c; endpoints: 10.0.1.1:8080, "},
      {{"plan", "--resources", kZones, "--cluster", "ordres"},
       "there is no cluster 'ordres'; clusters: orders, orders-primary, orders-secondary"},
      {{"plan", "--resources", kZones, "--target", "xds:///ordres"}, "listeners: orders"},
      {{"plan", "--resources", kZones, "--target", "orders", "--cluster", "orders"}, "--target"},
      {{"plan", "--resources", kZones, "--health", "orders-primary/0=101"},
       "expected CLUSTER/PRIORITY=PERCENT with 0 to 100 percent, got 'orders-primary/0=101'"},
      {{"plan", "--resources", kZones, "--health", "orders-primary/1=5"},
       "there is: orders-primary/0, orders-secondary/0"},
      {{"plan", "--resources", kZones, "--health", "orders/0=5"},
       "there is: orders-primary/0, orders-secondary/0"},
      {{"plan",
        "--resources",
        kZones,
        "--health",
        "orders-primary/0=60",
        "--degraded",
        "orders-primary/0=41"},
       "0 to 100 percent together, found 60 and 41"},
      {{"plan", "--resources", kZones, "--health", "orders-primary/0=5", "--down", "zone-a"},
       "leave one of the two out"},
      {{"plan", "--resources", kZones, "--mode", "failover"}, "--mode"},
      {{"plan", "--resources", kZones, "--panic-threshold", "101"}, "--panic-threshold"},
      {{"plan", "--resources", kZones, "--json", "--html", "p.html"}, "--html"},
      {{"plan", "--resources", kZones, "--html", ""}, "--html: expected the name of a file"},
      {{"plan", "--resources", kZones, "--html", "/no/such/folder/p.html"},
       "--html /no/such/folder/p.html: cannot be written"},
      {{"check"}, "FILE is required"},
      {{"check", "/no/such/file.yaml"}, "/no/such/file.yaml"},
  }));
  const Finished finished = run(row.arguments);
  INFO(finished.errors);
  CHECK(finished.status == 2);
  CHECK(contains(finished.errors, row.says));
  CHECK(finished.output.empty());
}

TEST_CASE(
    "signalbox dump: a process that is stopped is waited for as long as --timeout says, "
    "unless a signal comes",
    "[e2e][tools]") {
  const TemporaryFolder folder;
  auto stopped = start({"serve",
                        "--resources",
                        folder.write("resources.yaml", kOneCluster),
                        "--listen",
                        "127.0.0.1:0"});
  const std::string address = ready_line(stopped)["address"];
  stopped.send_signal(SIGSTOP);
  const Finished finished = run({"dump", "--admin", address, "--timeout", "0.25"});
  auto waiting = start({"dump", "--admin", address, "--timeout", "3600"});
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  waiting.send_signal(signal);
  CHECK(finish(waiting).status == 128 + signal);
  stopped.send_signal(SIGCONT);
  CHECK(finished.status == 1);
  CHECK(contains(finished.errors, address + ": no answer within 0.25 s; is the process stopped"));
}

TEST_CASE("signalbox: help has the defaults and the exit status", "[e2e][tools]") {
  const Finished all = run({"--help"});
  CHECK(all.status == 0);
  for (const char* command :
       {"demo", "serve", "backend", "plan", "check", "dump", "ready", "explain", "version"}) {
    CHECK(contains(all.output, command));
  }
  // Only other commands start these.
  for (const char* hidden : {"load-side", "launch"})
    CHECK_FALSE(contains(all.output, hidden));
  const Finished demo = run({"demo", "--help"});
  CHECK(demo.status == 0);
  CHECK(has_default(demo.output, "30"));
  CHECK(has_default(demo.output, "127.0.0.1:0"));
  CHECK(contains(demo.output, "Exit status"));
}

TEST_CASE("signalbox: help fits a terminal of 80 columns", "[e2e][tools]") {
  const std::string command = GENERATE("",
                                       "demo",
                                       "serve",
                                       "backend",
                                       "plan",
                                       "check",
                                       "dump",
                                       "ready",
                                       "explain",
                                       "replay",
                                       "version");
  std::vector<std::string> arguments = {"--help"};
  if (!command.empty()) arguments.insert(arguments.begin(), command);
  std::istringstream lines(run(arguments).output);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("signalbox explain: of a file, whose endpoints are assumed to be there",
          "[e2e][tools][explain]") {
  const auto explained = [](std::vector<std::string> more, int status = 0) {
    std::vector<std::string> arguments{
        "explain", "--resources", kConf + "/demo/resources.yaml", "--target", "xds:///orders"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Finished finished = run(arguments);
    INFO(finished.errors);
    CHECK(finished.status == status);
    CHECK(finished.errors.empty());
    CHECK_FALSE(contains(finished.output, "secret"));
    return finished.output;
  };
  const std::vector<std::string> call{"--method", "/signalbox.demo.v1.Orders/Place", "--seed", "7"};
  const std::string text = explained(call);
  INFO(text);
  CHECK(explained(call) == text);
  CHECK(contains(text, "[RDS orders-routes]"));
  CHECK(contains(text, "priority: priority 0 of 3: cluster orders-primary"));
  CHECK(contains(text, "weighted_target: locality {region=\"here\", zone=\""));
  CHECK(contains(text, "round_robin: 127.0.0.1"));
  CHECK(contains(text, "[CDS orders-primary]"));
  CHECK(contains(text, "\nThe call goes to 127.0.0.1"));
  CHECK(contains(text, ", in leaf orders-primary of cluster orders.\n"));

  auto with_secrets = call;
  for (const char* word :
       {"--header", "authorization: secret", "--cookie", "orders-session=secret", "--json"})
    with_secrets.emplace_back(word);
  const auto json = nlohmann::json::parse(explained(with_secrets));
  CHECK(json["outcome"] == "complete");
  CHECK(json["cluster"] == "orders");
  CHECK(json["leaf"] == "orders-primary");
  CHECK(json["seed"] == 7);
  CHECK(contains(json["steps"].dump(), "its cookie is not used"));

  const std::string nowhere = explained({"--method", "/nowhere/M"}, /*status=*/1);
  CHECK(
      contains(nowhere, "The call fails: UNAVAILABLE: xds:///orders: no route for \"/nowhere/M\""));
  // A resource file has no node, so the error names no node ID.
  CHECK_FALSE(contains(nowhere, "node ID"));
}

// Four endpoints in two priorities; one endpoint of priority 0 is DRAINING. The policy `Nearest`
// and the filter `Tenant` are not built into signalbox. The TLS settings name a certificate
// provider of the bootstrap.
constexpr const char* kForeign = R"(
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: listener-of-orders
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        route_config:
          name: routes
          virtual_hosts:
            - name: orders
              domains: ["*"]
              routes: [{match: {prefix: ""}, route: {cluster: both}}]
        http_filters:
          - name: tenant
            typed_config:
              "@type": type.googleapis.com/xds.type.v3.TypedStruct
              type_url: type.googleapis.com/com.example.Tenant
          - name: sessions
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession
              strict: true
              session_state:
                name: cookie
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState
                  cookie: {name: session}
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: both
    cluster_type:
      name: envoy.clusters.aggregate
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
        clusters: [near]
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: near
    type: EDS
    eds_cluster_config: {eds_config: {ads: {}}}
    common_lb_config: {override_host_status: {statuses: [UNKNOWN, HEALTHY, DRAINING]}}
    load_balancing_policy:
      policies:
        - typed_extension_config:
            name: nearest
            typed_config:
              "@type": type.googleapis.com/xds.type.v3.TypedStruct
              type_url: type.googleapis.com/com.example.Nearest
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context:
          validation_context: {ca_certificate_provider_instance: {instance_name: mesh}}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: near
    endpoints:
      - locality: {zone: a}
        load_balancing_weight: 1
        lb_endpoints:
          - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}
          - endpoint: {address: {socket_address: {address: 127.0.0.2, port_value: 1}}}
          - endpoint: {address: {socket_address: {address: 127.0.0.3, port_value: 1}}}
            health_status: DRAINING
      - locality: {zone: b}
        load_balancing_weight: 1
        priority: 1
        lb_endpoints:
          - endpoint: {address: {socket_address: {address: 127.0.0.4, port_value: 1}}}
)";

// `signalbox explain` of kForeign.
class ForeignFile {
 public:
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"explain",
                                 "--resources",
                                 resources_,
                                 "--target",
                                 "xds:///orders",
                                 "--method",
                                 "/a.B/C",
                                 "--seed",
                                 "7",
                                 "--bootstrap",
                                 bootstrap_,
                                 "--lb-policy",
                                 "com.example.Nearest",
                                 "--http-filter",
                                 "com.example.Tenant"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::string explained(const std::vector<std::string>& more, int status = 0) const {
    const Finished finished = run(arguments(more));
    INFO(finished.output << finished.errors);
    CHECK(finished.status == status);
    CHECK(finished.errors.empty());
    return finished.output;
  }

  const std::string& resources() const { return resources_; }

 private:
  const TemporaryFolder folder_;
  const std::string resources_ = folder_.write("foreign.yaml", kForeign);
  // Nothing listens at this server's address, and the certificate files do not exist. `explain`
  // uses neither.
  const std::string bootstrap_ = folder_.write("bootstrap.json", R"json({
    "xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}],
    "node": {"id": "node-of-the-bootstrap"},
    "client_default_listener_resource_name_template": "listener-of-%s",
    "certificate_providers": {"mesh": {
      "plugin_name": "file_watcher", "config": {"ca_certificate_file": "/no/such/ca.pem"}}}
  })json");
};

std::string cookie_for(const std::string& hosts) {
  return "session=" + absl::Base64Escape(hosts + ";both");
}

TEST_CASE("signalbox explain: of a file with a bootstrap, custom policies and filters beside it",
          "[e2e][tools][explain]") {
  const ForeignFile file;
  const std::string text = file.explained({});
  INFO(text);
  CHECK(contains(text, "com.example.Tenant: the call passes"));
  CHECK(contains(text, "com.example.Nearest: round_robin stands in its place"));
  CHECK(contains(text, ":1, in leaf near of cluster both.\n"));

  // Without one of these options the command fails.
  for (const char* option : {"--bootstrap", "--lb-policy", "--http-filter"}) {
    std::vector<std::string> without = file.arguments();
    const auto at = std::find(without.begin(), without.end(), option);
    without.erase(at, at + 2);
    INFO(option);
    const Finished finished = run(without);
    CHECK(finished.status != 0);
  }
  CHECK(contains(refusal(file.arguments({"--lb-policy", "com.example.Nearest"}), 2), "once"));
  CHECK(contains(refusal({"explain",
                          "--admin",
                          "unix:s",
                          "--target",
                          "xds:///a",
                          "--method",
                          "/m",
                          "--lb-policy",
                          "com.example.Nearest"},
                         2),
                 "excludes"));
  CHECK(contains(refusal({"explain",
                          "--resources",
                          file.resources(),
                          "--target",
                          "xds:///orders",
                          "--method",
                          "/m",
                          "--bootstrap",
                          "/no/such.json"},
                         2),
                 "/no/such.json"));
}

TEST_CASE("signalbox explain: every endpoint of a file counts as connected for its sessions",
          "[e2e][tools][explain][A55]") {
  const ForeignFile file;
  for (const char* host : {"127.0.0.2:1", "127.0.0.3:1", "127.0.0.4:1"}) {
    const std::string text = file.explained({"--cookie", cookie_for(host)});
    INFO(text);
    CHECK(contains(text,
                   std::string("The call goes to ") + host + ", in leaf near of cluster both."));
    CHECK(contains(text, "the session stays"));
  }
  const std::string refused = file.explained({"--cookie", cookie_for("127.0.0.9:1")}, /*status=*/1);
  CHECK(contains(refused,
                 "the session is strict, and the host of its cookie cannot be used: no endpoint of "
                 "the cluster has this address (node ID: node-of-the-bootstrap)"));
}

TEST_CASE("signalbox explain: a seed gives the same answer, whatever else the machine does",
          "[e2e][tools][explain]") {
  const ForeignFile file;
  const std::vector<std::string> cookie{"--cookie", cookie_for("127.0.0.4:1")};
  std::vector<tools::ChildProcess> at_once;
  at_once.reserve(8);
  for (int i = 0; i < 8; ++i)
    at_once.push_back(start(file.arguments(i % 2 == 0 ? std::vector<std::string>{} : cookie)));
  std::set<std::string> plain;
  std::set<std::string> of_session;
  for (std::size_t i = 0; i < at_once.size(); ++i) {
    const Finished finished = finish(at_once[i]);
    (i % 2 == 0 ? plain : of_session).insert(finished.output + finished.errors);
  }
  CHECK(plain.size() == 1);
  CHECK(of_session.size() == 1);
  CHECK(contains(*plain.begin(), "drawn by the seed: "));
}

TEST_CASE("signalbox plan: a zone that dies, as a table, as data and as a page",
          "[e2e][tools][plan][ENV-22]") {
  const Finished table = run({"plan", "--resources", kZones, "--down", "zone-a"});
  INFO(table.output << table.errors);
  CHECK(table.status == 0);
  CHECK(contains(table.output, "orders: percent of its calls, now and if zone-a is down"));
  CHECK(contains(table.output, "In tiered mode 50 % of the calls would move."));

  const Finished json = run({"plan", "--resources", kZones, "--down", "zone-a", "--json"});
  CHECK(json.status == 0);
  const auto data = nlohmann::json::parse(json.output);
  CHECK(
      data["clusters"][0]["shares"] ==
      nlohmann::json::parse(
          R"({"priority": {"now": 100.0, "then": 100.0}, "tiered": {"now": 100.0, "then": 70.0}})"));
  CHECK(data["clusters"][1]["shares"]["tiered"]["then"] == 30.0);
  CHECK(data["flip"] == nlohmann::json({{"to", "tiered"}, {"moved", 30.0}}));

  const TemporaryFolder folder;
  const std::string page = folder.path("plan.html");
  const Finished html =
      run({"plan", "--resources", kZones, "--target", "xds:///orders", "--html", page});
  CHECK(html.status == 0);
  std::ifstream file(page);
  std::stringstream text;
  text << file.rdbuf();
  CHECK(contains(text.str(), "<!DOCTYPE html>"));
  CHECK(contains(text.str(), "orders-secondary"));
}

TEST_CASE("signalbox plan: health in percent, to the integer", "[e2e][tools][plan][ENV-22]") {
  const Finished finished = run({"plan",
                                 "--resources",
                                 kZones,
                                 "--health",
                                 "orders-primary/0=20",
                                 "--health",
                                 "orders-secondary/0=20",
                                 "--mode",
                                 "tiered",
                                 "--json"});
  CHECK(finished.status == 0);
  const auto data = nlohmann::json::parse(finished.output);
  for (const auto& cluster : data["clusters"]) {
    CHECK(cluster["priorities"][0]["health"]["then"]["healthy"] == 28);
    CHECK(cluster["shares"] ==
          nlohmann::json(
              {{"tiered",
                {{"now", cluster["name"] == "orders-primary" ? 100.0 : 0.0}, {"then", 50.0}}}}));
  }
}

TEST_CASE("signalbox plan: names in a page are escaped", "[e2e][tools][plan]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("evil.yaml", R"(
resources:
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: "<script>alert(1)</script>"
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: "<script>alert(1)</script>"
    endpoints:
      - locality: {zone: "\"><img src=x>"}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]
)");
  const std::string page = folder.path("plan.html");
  CHECK(run({"plan", "--resources", file, "--html", page}).status == 0);
  std::ifstream stream(page);
  std::stringstream text;
  text << stream.rdbuf();
  CHECK(contains(text.str(), "&lt;script&gt;alert(1)&lt;/script&gt;"));
  CHECK_FALSE(contains(text.str(), "<script"));
  CHECK_FALSE(contains(text.str(), "<img"));
}

TEST_CASE("signalbox check: every error of a file has a line", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("bad.yaml",
                                        R"(
resources:
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: one, lb_polcy: X}
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: two, typ: X}
)");
  const Finished finished = run({"check", file});
  CHECK(finished.status == 1);
  CHECK(contains(finished.output, file + ": line 3: "));
  CHECK(contains(finished.output, "\n" + file + ": line 4: "));
  CHECK(nlohmann::json::parse(run({"check", "--json", file}).output)["files"][0]["errors"].size() ==
        2);
}

TEST_CASE("signalbox check: what looks wrong is warned of, with its line", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("loose.yaml", R"(
resources:
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: one, type: EDS, eds_cluster_config: {eds_config: {self: {}}}}
)");
  const Finished finished = run({"check", file});
  CHECK(finished.status == 0);
  CHECK(finished.output == "warning: " + file +
                               ": line 3: resources[0]: envoy.config.cluster.v3.Cluster \"one\": "
                               "eds_cluster_config: the "
                               "file has no ClusterLoadAssignment \"one\": calls fail\n" +
                               file + ": ok: resources, 1 resource, 1 warning\n");
  const auto data = nlohmann::json::parse(run({"check", "--json", file}).output)["files"][0];
  CHECK(data["ok"] == true);
  CHECK(data["warnings"].size() == 1);
}

TEST_CASE("signalbox check: what istiod sends a proxyless client is right", "[e2e][tools][A27]") {
  const std::string folder = SIGNALBOX_ISTIO;
  const Finished finished = run({"check", folder + "/bootstrap.json", folder + "/resources.json"});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK(contains(finished.output, "48 resources"));
}

TEST_CASE("signalbox check: a limit can be another one", "[e2e][tools][limits]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("good.yaml", R"(
resources:
  - {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: abc}
)");
  CHECK(run({"check", file}).status == 0);
  CHECK(run({"check", "--limit", "max_name_length=3", "--limit", "max_routes=1", file}).status ==
        0);
  const Finished beyond = run({"check", "--limit", "max_name_length=2", file});
  CHECK(beyond.status == 1);
  CHECK(contains(beyond.output, "cluster_name: must not be longer than 2 bytes, found 3"));
  CHECK(contains(beyond.output, "(limit max_name_length)"));
  for (const char* wrong : {"max_rotes=1", "max_routes", "max_routes=", "max_routes=-1", "=1"}) {
    const Finished refused = run({"check", "--limit", wrong, file});
    CHECK(refused.status == 2);
    CHECK(contains(refused.errors, std::string("got '") + wrong + "'"));
  }
  CHECK(contains(run({"check", "--help"}).output, "max_routes=10000"));
}

TEST_CASE("signalbox check: a custom LB policy may be named", "[e2e][tools][A52]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("custom.yaml", R"(
resources:
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
    load_balancing_policy:
      policies:
        - typed_extension_config:
            name: nearest
            typed_config:
              "@type": type.googleapis.com/xds.type.v3.TypedStruct
              type_url: type.googleapis.com/com.example.Nearest
              value: {anything: [1, 2]}
)");
  const std::string unknown = refusal({"check", file}, 1);
  CHECK(contains(unknown, "must name a policy that is supported"));
  CHECK(contains(unknown, "found \"com.example.Nearest\""));
  CHECK(run({"check", "--lb-policy", "com.example.Other", file}).status == 1);
  CHECK(
      run({"check", "--lb-policy", "com.example.Other", "--lb-policy", "com.example.Nearest", file})
          .status == 0);
  CHECK(contains(refusal({"check",
                          "--lb-policy",
                          "com.example.Nearest",
                          "--lb-policy",
                          "com.example.Nearest",
                          file},
                         2),
                 "--lb-policy: must be named once, got 'com.example.Nearest' twice"));
  CHECK(contains(run({"check", "--help"}).output, "--lb-policy NAME"));
}

TEST_CASE("signalbox check: a custom LB policy is called as a runtime would let it be",
          "[e2e][tools][A52]") {
  const std::string file = kConf + "/demo/resources.yaml";
  const auto errors = [&](const std::string& name) {
    return refusal({"check", "--lb-policy=" + name, file}, 2);
  };
  CHECK(contains(errors("round_robin"), "must be none of signalbox's own, found \"round_robin\""));
  CHECK(contains(errors("a/b"), "must be printable, without spaces, slashes and quotes"));
  CHECK(run({"check", "--lb-policy", "", file}).status == 2);
}

TEST_CASE("signalbox check: a custom HTTP filter may be named", "[e2e][tools][A39]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("custom.yaml", R"(
resources:
  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: orders
    virtual_hosts:
      - name: all
        domains: ["*"]
        routes: [{match: {prefix: ""}, route: {cluster: c}}]
        typed_per_filter_config:
          tenant:
            "@type": type.googleapis.com/xds.type.v3.TypedStruct
            type_url: type.googleapis.com/com.example.Tenant
            value: {anything: [1, 2]}
)");
  CHECK(contains(refusal({"check", file}, 1), "found \"com.example.Tenant\""));
  CHECK(run({"check", "--http-filter", "com.example.Other", file}).status == 1);
  CHECK(run({"check", "--http-filter", "com.example.Tenant", file}).status == 0);
  CHECK(contains(refusal({"check", "--http-filter", "envoy.Any", file}, 2),
                 "must be none of the API's own, found \"envoy.Any\""));
}

TEST_CASE("signalbox check: obeys the environment, and its help says so", "[e2e][tools][A75-8]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("aggregate.yaml", R"(
resources:
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    lb_policy: CLUSTER_PROVIDED
    cluster_type:
      name: envoy.clusters.aggregate
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
        clusters: [primary]
)");
  CHECK(run({"check", file}).status == 0);
  ::setenv("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT", "true", 1);
  const Finished kept = run({"check", file});
  ::unsetenv("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT");
  CHECK(kept.status == 1);
  CHECK(contains(kept.output, "found CLUSTER_PROVIDED"));
  CHECK(contains(run({"check", "--help"}).output, "Environment variables"));
}

TEST_CASE("signalbox version: names the libraries, as data too", "[e2e][tools]") {
  const Finished text = run({"version"});
  CHECK(text.status == 0);
  CHECK(contains(text.output, "signalbox 0."));
  CHECK(run({"--version"}).output == text.output);
  const auto data = nlohmann::json::parse(run({"version", "--json"}).output);
  for (const char* key : {"version", "grpc", "protobuf", "compiler", "build"}) {
    CHECK(data.contains(key));
  }
}

TEST_CASE("signalbox check: clusters may name the providers of a bootstrap beside them",
          "[e2e][tools][A29]") {
  const TemporaryFolder folder;
  const std::string resources = folder.write("tls.yaml", R"(
resources:
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context:
          validation_context: {ca_certificate_provider_instance: {instance_name: mesh}}
)");
  const Finished alone = run({"check", resources});
  CHECK(alone.status == 1);
  CHECK(contains(alone.output, "certificate_providers (none), found \"mesh\""));
  const Finished beside = run({"check", resources, kConf + "/bootstrap.example.json"});
  INFO(beside.output);
  CHECK(beside.status == 0);
  const Finished plan = run({"plan", "--resources", resources});
  CHECK(plan.status == 2);
  CHECK(contains(plan.errors, "certificate_providers (none), found \"mesh\""));
  const std::string bootstrap = kConf + "/bootstrap.example.json";
  CHECK(run({"plan", "--resources", resources, "--bootstrap", bootstrap}).status == 0);
  CHECK(run({"plan", "--resources", resources, "--bootstrap", "/no/such.json"}).status == 2);
}

TEST_CASE("signalbox check: what is shipped is right", "[e2e][tools]") {
  const Finished finished = run({"check",
                                 kConf + "/demo/resources.yaml",
                                 kConf + "/bootstrap.example.json",
                                 kConf + "/quickstart/resources.yaml",
                                 kZones,
                                 kConf + "/bootstrap.file.example.json"});
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK(contains(finished.output, "resources.yaml: ok: resources, 8 resources"));
  CHECK(contains(finished.output, "bootstrap.example.json: ok: bootstrap, 1 server"));
  CHECK(contains(finished.output, "quickstart/resources.yaml: ok: resources, 3 resources"));
  CHECK(contains(finished.output, "zones.yaml: ok: resources, 6 resources"));
  CHECK(contains(finished.output, "bootstrap.file.example.json: ok: bootstrap, a resource file"));
}

TEST_CASE("signalbox check: names file, resource and field of every error", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string resources = folder.write("bad.yaml",
                                             R"(
resources:
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: one, type: EDS}
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: two, type: STATIC}
)");
  const std::string bootstrap = folder.write("bad.json", R"({"xds_servers": "none"})");
  const std::string neither = folder.write("neither.yaml", "hello: world");

  const Finished text = run({"check", resources, bootstrap, neither});
  CHECK(text.status == 1);
  CHECK(contains(text.output, resources + ": CDS resource \"one\": eds_cluster_config"));
  CHECK(contains(text.output, resources + ": CDS resource \"two\": type"));
  CHECK(contains(text.output, bootstrap + ": xds_servers"));
  CHECK(contains(text.output, neither + ": neither"));

  const Finished data = run({"check", "--json", resources, bootstrap});
  CHECK(data.status == 1);
  const auto files = nlohmann::json::parse(data.output)["files"];
  REQUIRE(files.size() == 2);
  CHECK(files[0]["kind"] == "resources");
  CHECK(files[0]["ok"] == false);
  CHECK(files[0]["errors"].size() == 2);
  CHECK(files[1]["kind"] == "bootstrap");
}

TEST_CASE("signalbox backend: answers until SIGTERM, then ends with 0", "[e2e][tools]") {
  auto backend = start({"backend", "--name", "b-1", "--cluster", "b"});
  const auto ready = ready_line(backend);
  CHECK(ready["pid"] == backend.pid());
  const auto stub = demo::v1::Orders::NewStub(
      grpc::CreateChannel(ready["address"], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  demo::v1::PlaceReply reply;
  const auto status = stub->Place(&context, {}, &reply);
  INFO(status.error_message());
  REQUIRE(status.ok());
  CHECK(reply.backend() == "b-1");
  CHECK(reply.cluster() == "b");
  CHECK(reply.pid() == static_cast<std::uint32_t>(backend.pid()));

  backend.send_signal(SIGTERM);
  CHECK(finish(backend).status == 0);
}

TEST_CASE("signalbox backend: its help has what examples need, and wrong options are told",
          "[e2e][tools]") {
  const Finished help = run({"backend", "--help"});
  CHECK(help.status == 0);
  for (const char* part : {"--listen ADDRESS",
                           "--name NAME",
                           "--cluster NAME",
                           "signalbox.demo.v1.Orders/Place",
                           "SIGTERM",
                           "Exit status"})
    CHECK(contains(help.output, part));
  CHECK(has_default(help.output, "127.0.0.1:0"));
  CHECK_FALSE(contains(help.output, "--parent"));

  const auto refused = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"backend", "--name", "b-1", "--cluster", "b"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run(arguments);
    CHECK(finished.status == 2);
    return finished.errors;
  };
  CHECK(contains(refused({"--listen", "50051"}), "expected host:port, got '50051'"));
  CHECK(contains(refused({"--at-once", "0"}), "expected a number from 1 to 10000, got '0'"));
  CHECK(contains(refused({"--failing-attempts", "-1"}), "expected a number from 0 to 1000"));
  CHECK(contains(refused({"--certificate", "a.pem"}), "--private-key"));
  CHECK(contains(refused({"--certificate", "/none/a.pem", "--private-key", "/none/a.key"}),
                 "certificate_file /none/a.pem: the file cannot be read"));
}

TEST_CASE("signalbox backend: refuses an address in use", "[e2e][tools]") {
  auto backend = start({"backend", "--name", "b-1", "--cluster", "b"});
  const std::string address = ready_line(backend)["address"];
  const Finished second = run({"backend", "--name", "b-2", "--cluster", "b", "--listen", address});
  CHECK(second.status == 2);
  CHECK(contains(second.errors, "cannot listen on " + address));
}

TEST_CASE("signalbox serve: an address in use or a wrong file ends it with 2", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("resources.yaml", kOneCluster);
  auto first = start({"serve", "--resources", file, "--listen", "127.0.0.1:0"});
  const std::string address = ready_line(first)["address"];
  const Finished second = run({"serve", "--resources", file, "--listen", address});
  CHECK(second.status == 2);
  CHECK(contains(second.errors, address));

  const std::string wrong = folder.write("wrong.yaml", "resources: 7");
  const Finished third = run({"serve", "--resources", wrong, "--listen", "127.0.0.1:0"});
  CHECK(third.status == 2);
  CHECK(contains(third.errors, wrong));

  first.send_signal(SIGTERM);
  CHECK(finish(first).status == 0);
}

}  // namespace signalbox::test
