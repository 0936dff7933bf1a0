// SPDX-License-Identifier: Apache-2.0
//
// `signalbox demo` as a process: its failovers and drills, its output and its pages, and what is
// left when it ends.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/support/http_peer.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/control_plane.hpp"

namespace signalbox::test {
namespace {

constexpr std::size_t kChildren = 8;  // Seven backends and the control plane.

// Settings of other commands, even wrong ones, do not reach the demo's processes.
tools::ChildProcess start_demo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"/usr/bin/env", "SIGNALBOX_BACKEND_AT_ONCE=none", SIGNALBOX_PROGRAM, "demo"});
  return start_program(arguments);
}

// Starts a demo of ten minutes. Its own folder lies in `folder`, because a killed demo cannot
// remove it.
tools::ChildProcess start_demo_in(const TemporaryFolder& folder) {
  return start_program({"/usr/bin/env",
                        "TMPDIR=" + folder.path("."),
                        SIGNALBOX_PROGRAM,
                        "demo",
                        "--seconds",
                        "600",
                        "--rps",
                        "50"});
}

// Reads until a line contains `part`, and returns that line.
std::string read_until(tools::ChildProcess& demo, const std::string& part) {
  for (;;) {
    auto line = demo.read_line(kPatience);
    INFO(line.status().ToString() << " " << demo.captured_errors());
    REQUIRE(line.ok());
    if (line->find(part) != std::string::npos) return *std::move(line);
  }
}

// Whether the child of a demo is a backend. Another child is the control plane.
bool is_backend(pid_t child) {
  std::ifstream words("/proc/" + std::to_string(child) + "/cmdline");
  for (std::string word; std::getline(words, word, '\0');) {
    if (word == "backend") return true;
  }
  return false;
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The demo's script spreads its events over these seconds. Sanitized backends take longer to
// return.
#if defined(__SANITIZE_ADDRESS__)
constexpr char kSeconds[] = "15";
#else
constexpr char kSeconds[] = "6";
#endif

}  // namespace

TEST_CASE("demo: fails over, back, loses only what killed backends had, and keeps its session",
          "[e2e][demo][session][A75-50][A55-42]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("result.json");
  const std::string page = folder.path("demo.html");
  auto demo = start_demo({"--seconds", kSeconds, "--rps", "200", "--json", file, "--html", page});
  read_until(demo, "metrics on http://127.0.0.1:");
  const std::vector<pid_t> children = children_of(demo.pid());
  CHECK(children.size() == kChildren);
  const Finished finished = finish(demo);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);

  std::ifstream stream(file);
  const auto data = nlohmann::json::parse(stream);
  INFO(data.dump(2));
  CHECK(data["rpcs"] >= 1000);
  CHECK(data["failed_other"] == 0);
  CHECK(data["failed_in_flight"] <= data["in_flight_at_kill"]);
  CHECK(data["session_moves"] == 0);
  for (const char* act : {" drains, and the session is on it", " gets a lower priority instead"})
    CHECK_THAT(finished.output,
               Catch::Matchers::Contains("── orders-primary-") && Catch::Matchers::Contains(act));
  CHECK(data["failover_ms"].is_number());
  CHECK(data["failback_ms"].is_number());
  CHECK(data["p50_us"] > 0);
  CHECK(data["p99_us"] >= data["p50_us"]);
  for (const char* cluster : {"orders-primary", "orders-secondary", "orders-legacy"}) {
    CHECK(data["per_cluster"][cluster] > 0);
    CHECK_THAT(text_of(page), Catch::Matchers::Contains(std::string(cluster) + ", priority 0"));
  }
  for (const char* part : {"kill orders-primary",
                           "kill orders-secondary",
                           "restart orders-primary",
                           "drain orders-primary-",
                           "failed otherwise &gt; 0",
                           "failed checks of the demo &gt; 0",
                           "that a killed backend had",
                           "id=\"load-data\""})
    CHECK_THAT(text_of(page), Catch::Matchers::Contains(part));
  CHECK_THAT(text_of(page), !Catch::Matchers::Contains("✗ missed"));
  CHECK(are_gone(children));
}

TEST_CASE("demo: in JSON the runtime's log has the failovers", "[e2e][demo][log]") {
  auto demo = start_demo({"--seconds", kSeconds, "--rps", "200", "--log-format", "json"});
  const Finished finished = finish(demo);
  INFO(finished.errors);
  CHECK(finished.status == 0);
  std::set<std::string> texts;
  std::istringstream lines(finished.errors);
  for (std::string line; std::getline(lines, line);) {
    const auto said = nlohmann::json::parse(line);
    CHECK(said["command"] == "demo");
    texts.insert(said["level"].get<std::string>() + " " + said["text"].get<std::string>());
  }
  CHECK(texts.contains(
      "warning cluster orders: calls go to a lower priority: the one before failed"));
  CHECK(texts.contains("info cluster orders: calls go to a higher priority: it has recovered"));
  CHECK(std::ranges::any_of(texts, [](const std::string& text) {
    return text.find("info xds:///orders: calls follow configuration ") == 0;
  }));
}

TEST_CASE("demo: a stop signal ends it and all that it started", "[e2e][demo]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  auto demo = start_demo({"--seconds", "600", "--rps", "50"});
  read_until(demo, " s ");
  const std::vector<pid_t> children = children_of(demo.pid());
  CHECK(children.size() == kChildren);
  demo.send_signal(signal);
  const Finished finished = finish(demo);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 128 + signal);
  CHECK(finished.errors.find("stopped by ") != std::string::npos);
  CHECK(are_gone(children));
}

TEST_CASE("demo: the next one removes the folder that a killed one left", "[e2e][demo]") {
  const TemporaryFolder folder;
  const auto start = [&folder] {
    auto demo = start_demo_in(folder);
    read_until(demo, " s ");
    return demo;
  };
  const auto folders = [&folder] {
    const auto all = std::filesystem::directory_iterator(folder.path("."));
    return std::distance(begin(all), end(all));
  };
  auto killed = start();
  const std::vector<pid_t> children = children_of(killed.pid());
  killed.send_signal(SIGKILL);
  CHECK(finish(killed).status == 128 + SIGKILL);
  CHECK(are_gone(children));
  CHECK(folders() == 1);
  auto next = start();
  CHECK(folders() == 1);
  next.send_signal(SIGTERM);
  CHECK(finish(next).status == 128 + SIGTERM);
  CHECK(folders() == 0);
}

TEST_CASE("demo: `signalbox dump` looks into it while it runs", "[e2e][demo][dump][A40]") {
  const TemporaryFolder folder;
  const std::string address = "unix:" + folder.path("admin.sock");
  auto demo = start_demo({"--seconds", "600", "--rps", "50", "--admin", address});
  read_until(demo, "admin pages on " + address);
  read_until(demo, " s ");  // The load runs, so every cluster is known.
  const auto dump = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {SIGNALBOX_PROGRAM, "dump", "--admin", address});
    return run_program(more);
  };

  const Finished table = dump({});
  INFO(table.output << table.errors);
  CHECK(table.status == 0);
  CHECK(table.errors.empty());
  CHECK_THAT(table.output, Catch::Matchers::StartsWith("node signalbox-demo\nserver 127.0.0.10:"));
  CHECK_THAT(table.output, Catch::Matchers::Contains("\nCDS   orders-primary    ACKED"));

  const auto data = nlohmann::json::parse(dump({"--json"}).output);
  CHECK(data["generic_xds_configs"].size() == 8);
  for (const auto& resource : data["generic_xds_configs"])
    CHECK(resource["client_status"] == "ACKED");

  const Finished one = dump({"--type", "eds", "--name", "orders-secondary", "--json"});
  CHECK(one.status == 0);
  CHECK(nlohmann::json::parse(one.output)["generic_xds_configs"].size() == 1);
  const Finished none = dump({"--name", "nothing"});
  CHECK(none.status == 1);
  CHECK_THAT(none.errors, Catch::Matchers::Contains("no resource 'nothing' is in use"));
  CHECK_THAT(dump({"--name", "nothing", "--type", "eds"}).errors,
             Catch::Matchers::Contains("no EDS resource 'nothing' is in use"));

  // A second demo finds the admin socket in use, and the first demo's socket stays.
  auto second = start_demo({"--admin", address});
  const Finished refused = finish(second);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.errors, Catch::Matchers::Contains("another process listens there"));
  CHECK(dump({}).status == 0);

  demo.send_signal(SIGTERM);
  finish(demo);
  const Finished late = dump({});
  CHECK(late.status == 2);
  CHECK_THAT(late.errors, Catch::Matchers::Contains("there is no such socket"));
}

TEST_CASE("demo: its metrics have the buckets and the detail that were asked for",
          "[e2e][demo][metrics]") {
  const std::string calls = "signalbox_calls_total{";
  const std::string by_endpoint = "signalbox_endpoint_rpcs_total{";
  const std::string in_grpcs_buckets = "le=\"100\"} ";

  struct Row {
    std::vector<std::string> arguments;
    std::vector<std::string> present;
    std::vector<std::string> absent;
  };

  const auto row = GENERATE_COPY(
      values<Row>({{{}, {calls}, {by_endpoint, in_grpcs_buckets}},
                   {{"--metrics-detail", "none"}, {"signalbox_endpoints{"}, {calls, by_endpoint}},
                   {{"--metrics-detail", "endpoint", "--metrics-buckets", "grpc"},
                    {calls, by_endpoint, in_grpcs_buckets},
                    {}}}));
  std::vector<std::string> arguments{"--seconds", "600", "--rps", "50", "--metrics", "127.0.0.1:0"};
  arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
  auto demo = start_demo(arguments);
  const std::string line = read_until(demo, "metrics on http://127.0.0.1:");
  const int port = std::stoi(line.substr(line.rfind(':') + 1));
  read_until(demo, " s ");  // The load runs.
  const auto has = [&](const std::string& part) {
    const std::string page =
        channel::ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return page.find(part) != std::string::npos;
  };
  for (const std::string& part : row.present) {
    INFO(part);
    CHECK(eventually([&] { return has(part); }));
  }
  for (const std::string& part : row.absent) {
    INFO(part);
    CHECK_FALSE(has(part));
  }
  demo.send_signal(SIGTERM);
  CHECK(finish(demo).status == 128 + SIGTERM);
}

TEST_CASE("demo: killed, it leaves no process behind", "[e2e][demo]") {
  const TemporaryFolder folder;
  auto demo = start_demo_in(folder);
  read_until(demo, "metrics on ");
  const std::vector<pid_t> children = children_of(demo.pid());
  CHECK(children.size() == kChildren);
  demo.send_signal(SIGKILL);
  CHECK(finish(demo).status == 128 + SIGKILL);
  CHECK(are_gone(children));
}

TEST_CASE("demo: an address in use for /metrics is an error that names it", "[e2e][demo]") {
  const auto holder = tools::ControlPlane::start("127.0.0.1:0");
  REQUIRE(holder.ok());
  auto demo = start_demo({"--metrics", (*holder)->address()});
  const Finished finished = finish(demo);
  INFO(finished.errors);
  CHECK(finished.status == 2);
  CHECK(finished.errors.find("--metrics " + (*holder)->address()) != std::string::npos);
  CHECK(finished.errors.find("Address already in use") != std::string::npos);
}

TEST_CASE("demo: a page that cannot be written is an error before anything starts", "[e2e][demo]") {
  const TemporaryFolder folder;
  auto demo = start_demo({"--html", folder.path("none/demo.html")});
  const Finished finished = finish(demo);
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors, Catch::Matchers::Contains("--html " + folder.path("none/demo.html")));
}

TEST_CASE("demo: no call notices that the control plane is killed, stopped and replaced",
          "[e2e][demo][drill][S7][S11]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("result.json");
  auto demo = start_demo({"--drill",
                          "control-plane",
                          "--seconds",
                          "4",
                          "--kill-seconds",
                          "2",
                          "--stop-seconds",
                          "1",
                          "--rps",
                          "200",
                          "--json",
                          file,
                          "--html",
                          folder.path("demo.html")});
  const Finished finished = finish(demo);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  // Each second's line says whether the client is connected.
  CHECK_THAT(finished.output, !Catch::Matchers::Contains("?"));

  std::ifstream stream(file);
  const auto data = nlohmann::json::parse(stream);
  INFO(data.dump(2));
  CHECK(data["failed_other"] == 0);
  CHECK(data["rpcs"] > 1000);
  REQUIRE(data["phases"].size() == 3);
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"killed", "orders-secondary"}, {"stopped", "orders-legacy"}, {"replaced", "orders-primary"}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& phase = data["phases"][i];
    CHECK(phase["name"] == wanted[i].first);
    CHECK(phase["brings"] == wanted[i].second);
    CHECK(phase["too_early"] == 0);
    CHECK(phase["reconvergence_ms"].is_number());
    CHECK(phase["reconvergence_ms"] <= phase["bound_ms"]);
  }
  CHECK(data["phases"][0]["away_ms"] >= 2000);
  CHECK(data["phases"][0]["calls_meanwhile"] >= 100);
  CHECK(data["phases"][1]["away_ms"] >= 1000);
  CHECK(data["phases"][1]["calls_meanwhile"] >= 50);
  // SIGSTOP breaks no stream, so the client needs no back-off to reconnect: the bound is only
  // kReconvergenceTime.
  CHECK(data["phases"][1]["bound_ms"] == 5000);
  for (const char* part : {"kill control-plane", "stop control-plane", "kill control-plane#2"})
    CHECK_THAT(text_of(folder.path("demo.html")), Catch::Matchers::Contains(part));
}

TEST_CASE("demo: in tiered mode each cluster has the share that is computed while backends die",
          "[e2e][demo][drill][tiered][ENV-4][ENV-11][ENV-24]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("result.json");
  auto demo = start_demo({"--drill", "tiered", "--seconds", "10", "--rps", "300", "--json", file});
  const Finished finished = finish(demo);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);

  std::ifstream stream(file);
  const auto data = nlohmann::json::parse(stream);
  INFO(data.dump(2));
  CHECK(data["drill"] == "tiered");
  CHECK(data["failed_other"] == 0);
  // 4, 3, 2, 1, 0 of four endpoints are up: 140, 105, 70, 35, 0 percent by overprovisioning, of
  // which at most 100 count.
  const std::vector<double> primary{100, 100, 70, 35, 0};
  REQUIRE(data["steps"].size() == primary.size());
  for (std::size_t i = 0; i < primary.size(); ++i) {
    const auto& step = data["steps"][i];
    CHECK(step["step"] == i);
    CHECK(step["killed"].is_null() == (i == 0));
    CHECK(step["computed"]["orders-primary"] == primary[i]);
    CHECK(step["computed"]["orders-secondary"] == 100 - primary[i]);
    CHECK(step["computed"]["orders-legacy"] == 0);
    CHECK(step["calls"] >= 100);
    // The demo's own is_as_computed() checks each share within five standard deviations. This check
    // only shows that the shares follow the loads.
    CHECK(std::abs(step["measured"]["orders-primary"].get<double>() - primary[i]) < 25);
  }
  CHECK(data["steps"][4]["measured"]["orders-secondary"] == 100);
}

TEST_CASE("demo: a drill in which calls fail ends with 1 and says why", "[e2e][demo][drill][S7]") {
  auto demo = start_demo({"--drill",
                          "control-plane",
                          "--seconds",
                          "4",
                          "--kill-seconds",
                          "0",
                          "--stop-seconds",
                          "0",
                          "--rps",
                          "100"});
  for (int phase = 0; phase < 3; ++phase)
    read_until(demo, "is to be first");
  for (const pid_t child : children_of(demo.pid())) {
    if (is_backend(child)) ::kill(child, SIGKILL);
  }
  const Finished finished = finish(demo);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 1);
  CHECK(finished.errors.find("calls failed, none needed to") != std::string::npos);
}

TEST_CASE("demo: a drill ends with a stop signal, even while its control plane is stopped",
          "[e2e][demo][drill]") {
  auto demo = start_demo({"--drill", "control-plane", "--kill-seconds", "0", "--rps", "50"});
  read_until(demo, "SIGSTOP");
  const std::vector<pid_t> children = children_of(demo.pid());
  CHECK(children.size() == kChildren);
  demo.send_signal(SIGTERM);
  const Finished finished = finish(demo);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 128 + SIGTERM);
  CHECK(are_gone(children));
}

}  // namespace signalbox::test
