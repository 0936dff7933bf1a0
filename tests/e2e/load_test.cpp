// SPDX-License-Identifier: Apache-2.0
//
// `signalbox load` from outside: its measurements, its exit status, its /metrics, and its child
// processes.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include <catch2/catch.hpp>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/e2e/load_command.hpp"
#include "tests/support/http_peer.hpp"
#include "tests/support/process.hpp"
#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::test {
namespace {

// Fails `failures` calls, from call number `first` on.
class FailingOrders final : public demo::v1::Orders::Service {
 public:
  FailingOrders(int first, int failures) : first_(first), failures_(failures) {}

  grpc::Status Place(grpc::ServerContext*,
                     const demo::v1::PlaceRequest*,
                     demo::v1::PlaceReply*) override {
    const int number = calls_++;
    if (number >= first_ && number < first_ + failures_)
      return {grpc::StatusCode::INTERNAL, "planted"};
    return grpc::Status::OK;
  }

 private:
  const int first_;
  const int failures_;
  std::atomic<int> calls_ = 0;
};

struct Backend {
  explicit Backend(int failures) : service(100, failures) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
  }

  FailingOrders service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

// Whether the child makes the calls of a side.
bool is_side(pid_t child) {
  std::ifstream words("/proc/" + std::to_string(child) + "/cmdline");
  for (std::string word; std::getline(words, word, '\0');) {
    if (word == "load-side") return true;
  }
  return false;
}

// "T" of a process that was stopped.
std::string state_of(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string pid;
  std::string name;
  std::string state;
  stat >> pid >> name >> state;
  return state;
}

// The longest latency of the calls that were due in the bins from `first` up to `end`.
std::uint64_t longest(const nlohmann::json& side, std::size_t first, std::size_t end) {
  std::uint64_t longest = 0;
  for (std::size_t i = first; i < end; ++i)
    longest = std::max(longest, side.at("bins").at(i).at("max_ns").get<std::uint64_t>());
  return longest;
}

// The calls that were answered in the last second of a report's run.
int answered_at_the_end(const nlohmann::json& side) {
  const auto& bins = side.at("bins");
  int answered = 0;
  for (std::size_t i = bins.size() - 10; i < bins.size(); ++i)
    answered += bins.at(i).at("codes").value("0", 0);
  return answered;
}

// The values of a page of metrics, by name and labels.
using Samples = std::map<std::string, double>;

// The values of the metrics signalbox_load_* at /metrics; none if the server has ended.
Samples scrape(int port) {
  channel::HttpPeer peer(port);
  if (!peer.is_connected()) return {};
  peer.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string page = peer.receive();
  if (!page.ends_with('\n')) return {};  // The server ended meanwhile.
  std::istringstream lines(page);
  Samples samples;
  for (std::string line; std::getline(lines, line);) {
    double value = 0;
    const auto space = line.rfind(' ');
    if (line.find("signalbox_load_") == 0 && absl::SimpleAtod(line.substr(space + 1), &value))
      samples[line.substr(0, space)] = value;
  }
  return samples;
}

// The port in the line "metrics on http://127.0.0.1:PORT/metrics".
int metrics_port(const std::string& errors) {
  const std::string before = "metrics on http://127.0.0.1:";
  const auto at = errors.find(before);
  REQUIRE(at != std::string::npos);
  return std::stoi(errors.substr(at + before.size()));
}

}  // namespace

TEST_CASE("load: planted failures are lost calls, and a threshold is missed", "[e2e][load]") {
  const Backend backend(37);
  const Load load;
  const std::string script =
      load.write("drill.yaml", "acts:\n  - {at: 50ms, exec: ['true']}\n  - {at: 1s, mark: half}\n");
  const Finished finished = run_program(load.command(resources_of("127.0.0.1", backend.port),
                                                     {"--rate",
                                                      "200",
                                                      "--arrivals",
                                                      "even",
                                                      "--duration",
                                                      "2s",
                                                      "--script",
                                                      script,
                                                      "--fail-if",
                                                      "lost>0",
                                                      "--fail-if",
                                                      "lost[exec true]>37"}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 1);
  const auto report = load.report();
  const auto& side = report.at("sides").at(0);
  CHECK(side.at("failed") == 37);
  CHECK(side.at("ok") == 399 - 37);
  CHECK(side.at("codes") == nlohmann::json{{"0", 399 - 37}, {"13", 37}});
  CHECK(side.at("faults").at(0).at("lost") == 37);
  CHECK(side.at("faults").at(1).at("lost") == 0);
  CHECK(side.at("places").at(1) == nlohmann::json{{"cluster", "orders"}, {"priority", 0}});
  CHECK(report.at("faults").at(1).at("name") == "mark half");
  CHECK(report.at("thresholds").at(0).at("is_missed") == true);
  CHECK(report.at("thresholds").at(1).at("is_missed") == false);
  CHECK_THAT(finished.output,
             Catch::Contains("lost>0") && Catch::Contains("MISSED") &&
                 Catch::Contains("p99 back: not measured: "));
  CHECK_THAT(finished.errors,
             Catch::Contains("  | exec true\n") && Catch::Contains("  | mark half\n"));
}

TEST_CASE("load: both sides of a comparison make the same calls", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const Finished finished = run_program(
      load.command(resources_of("127.0.0.1", backend.port),
                   {"--rate", "100", "--duration", "1s", "--compare", "grpc", "--session", "3"}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto sides = load.report().at("sides");
  REQUIRE(sides.size() == 2);
  CHECK(sides.at(1).at("name") == "grpc");
  CHECK(sides.at(0).at("validity").at("scheduled") == sides.at(1).at("validity").at("scheduled"));
  CHECK(sides.at(0).at("ok") == sides.at(1).at("ok"));
  CHECK(sides.at(0).at("cpu_per_call_ns") > 0);
}

TEST_CASE("load: calls wait while the only backend is stopped", "[e2e][load]") {
  auto backend =
      start_program({SIGNALBOX_PROGRAM, "backend", "--name", "only", "--cluster", "orders"});
  const auto line = backend.read_line(kPatience);
  REQUIRE(line.ok());
  const std::string address = nlohmann::json::parse(*line).at("address");
  const auto colon = address.rfind(':');
  const Load load;
  const std::string script =
      load.write("drill.yaml",
                 absl::StrCat("processes: {only: {pidfile: ",
                              load.write("only.pid", std::to_string(backend.pid())),
                              "}}\nacts: [{at: 500ms, stop: only, for: 500ms}]\n"));
  const Finished finished = run_program(load.command(
      resources_of(address.substr(0, colon), std::stoi(address.substr(colon + 1))),
      {"--rate", "100", "--arrivals", "even", "--duration", "2s", "--script", script}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto report = load.report();
  const auto& side = report.at("sides").at(0);
  CHECK(side.at("ok") == 199);
  // 50 of the 199 calls were due while the backend was stopped, one every 10 ms. Ten of them, 5 %
  // of all calls, waited for 400 ms or more.
  CHECK(side.at("from_due").at("p95_ns") >= 390'000'000);
  CHECK(side.at("faults").at(0).at("lost") == 0);
  CHECK(report.at("faults").at(1).at("name") == "cont only");
}

TEST_CASE("load: a process of a pidfile that the script stopped goes on after the run",
          "[e2e][load]") {
  auto backend =
      start_program({SIGNALBOX_PROGRAM, "backend", "--name", "only", "--cluster", "orders"});
  const auto line = backend.read_line(kPatience);
  REQUIRE(line.ok());
  const std::string address = nlohmann::json::parse(*line).at("address");
  const auto colon = address.rfind(':');
  const Load load;
  const std::string script =
      load.write("drill.yaml",
                 absl::StrCat("processes: {only: {pidfile: ",
                              load.write("only.pid", std::to_string(backend.pid())),
                              "}}\nacts: [{at: 500ms, stop: only}]\n"));
  const Finished finished = run_program(
      load.command(resources_of(address.substr(0, colon), std::stoi(address.substr(colon + 1))),
                   {"--rate", "50", "--duration", "1s", "--timeout", "500ms", "--script", script}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK(load.report().at("sides").at(0).at("failed") > 0);  // The process was stopped.
  CHECK(state_of(backend.pid()) != "T");
}

TEST_CASE("load: the proxy in front of an endpoint delays, holds and resets, until it is cleared",
          "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const std::string address = absl::StrCat("127.0.0.1:", backend.port);
  const std::string script =
      load.write("drill.yaml",
                 absl::StrCat("acts:\n  - {at: 500ms, delay: '",
                              address,
                              "', by: 200ms, for: 300ms}\n  - {at: 1500ms, blackhole: '",
                              address,
                              "', for: 500ms}\n  - {at: 3s, reset: '",
                              address,
                              "', for: 300ms}\n"));
  const Finished finished = run_program(load.command(resources_of("127.0.0.1", backend.port),
                                                     {"--rate",
                                                      "50",
                                                      "--arrivals",
                                                      "even",
                                                      "--duration",
                                                      "8s",
                                                      "--timeout",
                                                      "60s",
                                                      "--script",
                                                      script}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.report().at("sides").at(0);
  const auto& faults = side.at("faults");
  REQUIRE(faults.size() == 6);
  CHECK(faults.at(0).at("lost") == 0);
  CHECK(faults.at(2).at("lost") == 0);
  CHECK(faults.at(4).at("lost") > 0);
  CHECK(longest(side, 5, 8) >= 200'000'000);    // In the delay.
  CHECK(longest(side, 15, 20) >= 200'000'000);  // In the blackhole.
  CHECK(answered_at_the_end(side) > 0);
  for (const auto& endpoint : side.at("endpoints")) {
    const std::string name = endpoint.at("address");
    CHECK((name.empty() || name == address));  // Never the proxy's.
  }
}

TEST_CASE("load: it raises its limit of open files for proxies, and commands keep theirs",
          "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const std::string check = load.write("check.sh",
                                       "test $(ulimit -n) = 100 || exit 1\n"
                                       "grep 'Max open files  *100 ' /proc/$PPID/limits && exit 2\n"
                                       "exit 0\n");
  const std::string script =
      load.write("drill.yaml", absl::StrCat("acts: [{at: 100ms, exec: [sh, ", check, "]}]\n"));
  std::vector<std::string> command{"/bin/sh", "-c", "ulimit -Sn 100; exec \"$@\"", "sh"};
  const auto words = load.command(resources_of("127.0.0.1", backend.port),
                                  {"--rate", "50", "--duration", "2s", "--script", script});
  command.insert(command.end(), words.begin(), words.end());
  const Finished finished = run_program(command);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
}

TEST_CASE("load: a control plane that was killed and started again drains an endpoint",
          "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const std::string script = load.write("drill.yaml",
                                        absl::StrCat("acts:\n  - {at: 200ms, kill: control-plane, "
                                                     "for: 200ms}\n  - {at: 1s, drain: '127.0.0.1:",
                                                     backend.port,
                                                     "', for: 4s}\n"));
  const Finished finished =
      run_program(load.command(resources_of("127.0.0.1", backend.port),
                               {"--rate", "50", "--duration", "9s", "--script", script}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.report().at("sides").at(0);
  CHECK(side.at("faults").at(0).at("lost") == 0);  // Calls need no control plane.
  CHECK(side.at("faults").at(2).at("lost") > 0);   // The only endpoint is drained.
  CHECK(answered_at_the_end(side) > 0);
}

TEST_CASE("load: a generator that is too slow is no valid measurement", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const Finished finished = run_program(
      load.command(resources_of("127.0.0.1", backend.port),
                   {"--rate", "1000000", "--duration", "100ms", "--max-in-flight", "2"}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 3);
  CHECK_THAT(finished.output, Catch::Contains("NOT VALID") && Catch::Contains("calls a second"));
  CHECK(load.report().at("sides").at(0).at("validity").at("is_valid") == false);
}

TEST_CASE("load: a signal cuts the run, and the report says so", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  auto process =
      start_program(load.command(resources_of("127.0.0.1", backend.port), {"--duration", "600s"}));
  await_first_second(process);
  const auto children = children_of(process.pid());
  CHECK(children.size() == 2);  // The control plane, and the process that makes the calls.
  process.send_signal(SIGINT);
  const Finished finished = finish(process);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 128 + SIGINT);
  CHECK(load.report().at("is_cut") == true);
  CHECK(load.report().at("sides").at(0).at("ok") > 0);
  CHECK(are_gone(children));
}

TEST_CASE("load: /metrics has what callers see until now, as the report has it", "[e2e][load]") {
  const Backend backend(5);
  const Load load;
  const std::string script = load.write("drill.yaml", "acts: [{at: 500ms, mark: half}]\n");
  auto process = start_program(load.command(resources_of("127.0.0.1", backend.port),
                                            {"--rate",
                                             "200",
                                             "--duration",
                                             "3s",
                                             "--warmup",
                                             "100ms",
                                             "--compare",
                                             "grpc",
                                             "--processes",
                                             "2",
                                             "--script",
                                             script,
                                             "--metrics",
                                             "0"}));
  await_first_second(process);
  const int port = metrics_port(process.captured_errors());
  std::vector<Samples> pages;
  REQUIRE(eventually([&] {
    if (auto page = scrape(port); !page.empty()) pages.push_back(std::move(page));
    return process.wait(std::chrono::milliseconds(20)).ok();
  }));
  const Finished finished = finish(process);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  REQUIRE(pages.size() > 1);
  for (std::size_t i = 1; i < pages.size(); ++i) {
    for (const auto& [name, value] : pages[i - 1]) {
      if (name.find("_total") != std::string::npos) CHECK(pages[i].at(name) >= value);
    }
  }
  Samples& last = pages.back();
  const auto report = load.report();
  for (const auto& side : report.at("sides")) {
    const std::string label = absl::StrCat("{side=\"", side.at("name").get<std::string>(), "\"");
    const auto value = [&last, &label](const std::string& name, const std::string& more = "}") {
      return last[absl::StrCat("signalbox_load_", name, label, more)];
    };
    const double ok = value("calls_total", ",code=\"OK\"}");
    const double failed = value("calls_total", ",code=\"INTERNAL\"}");
    CHECK(ok > 0);
    CHECK(ok <= side.at("ok"));
    CHECK(failed == side.at("failed"));  // These calls failed early.
    CHECK(value("scheduled_total") == value("sent_total") + value("dropped_total"));
    CHECK(value("scheduled_total") <= side.at("validity").at("scheduled"));
    CHECK(value("in_flight") == std::max(0.0, value("sent_total") - ok - failed));
    CHECK(value("latency_seconds_count", ",result=\"ok\"}") == ok);
    CHECK(value("latency_seconds_count", ",result=\"failed\"}") == failed);
    CHECK(value("lateness_seconds_count") == value("sent_total"));
  }
  CHECK(report.at("sides").at(0).at("failed").get<int>() +
            report.at("sides").at(1).at("failed").get<int>() ==
        5);
  const double act =
      last["signalbox_load_act_timestamp_seconds{act=\"mark half\",is_fault=\"false\"}"];
  CHECK(act == Approx(report.at("started_unix_ms").get<double>() / 1e3 +
                      report.at("faults").at(0).at("at_ns").get<double>() / 1e9)
                   .margin(0.001)
                   .epsilon(0));
}

TEST_CASE("load: an address of /metrics that is taken is a sentence", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const std::string address = absl::StrCat("127.0.0.1:", backend.port);
  const Finished finished =
      run_program(load.command(resources_of("127.0.0.1", backend.port), {"--metrics", address}));
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors,
             Catch::Contains("--metrics: metrics cannot be served on " + address +
                             ": Address already in use"));
}

TEST_CASE("load: processes of a side share the calls of one", "[e2e][load]") {
  const Backend backend(0);
  const auto run = [&backend](const std::vector<std::string>& more) {
    const Load load;
    std::vector<std::string> words{
        "--rate", "100", "--duration", "1s", "--warmup", "200ms", "--compare", "grpc"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished =
        run_program(load.command(resources_of("127.0.0.1", backend.port), words));
    INFO(finished.output << finished.errors);
    CHECK(finished.status == 0);
    CHECK_THAT(finished.errors, Catch::Contains("    1 s  | signalbox: sent "));
    return load.report();
  };
  const auto one = run({});
  const auto two = run({"--processes", "2", "--session", "3"});
  CHECK(one.at("configuration").at("processes") == 1);
  CHECK(two.at("configuration").at("processes") == 2);
  CHECK(two.at("configuration").at("rate") == "100");
  CHECK(two.at("merged") == 1);
  REQUIRE(two.at("sides").size() == 2);
  for (const auto& side : two.at("sides")) {
    const auto& alone = one.at("sides").at(0);
    CHECK(side.at("validity").at("scheduled") == alone.at("validity").at("scheduled"));
    CHECK(side.at("ok") == alone.at("ok"));
    CHECK(side.at("from_due").at("count") == side.at("ok"));
    REQUIRE(side.at("bins").size() == alone.at("bins").size());
    for (std::size_t i = 0; i < alone.at("bins").size(); ++i)
      CHECK(side.at("bins").at(i).at("scheduled") == alone.at("bins").at(i).at("scheduled"));
  }
}

TEST_CASE("load: a process that dies makes the measurement not valid", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  auto process = start_program(
      load.command(resources_of("127.0.0.1", backend.port),
                   {"--rate", "100", "--duration", "3s", "--processes", "3", "--compare", "grpc"}));
  await_first_second(process);
  std::vector<pid_t> sides;
  const auto children = children_of(process.pid());
  std::ranges::copy_if(children, std::back_inserter(sides), is_side);
  REQUIRE(sides.size() == 6);
  std::ranges::sort(sides);  // The processes of the signalbox side are started first.
  REQUIRE(::kill(sides[1], SIGKILL) == 0);
  const Finished finished = finish(process);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 3);
  const std::string death = absl::StrCat(
      "process 2 of 3 of the signalbox side ended early: process ", sides[1], " ended with 137");
  CHECK_THAT(finished.errors, Catch::Contains(death));
  CHECK_THAT(finished.output,
             Catch::Contains("NOT VALID: signalbox: " + death + "; its calls are missing"));
  const auto report = load.report();
  CHECK(report.at("sides").at(0).at("validity").at("is_valid") == false);
  CHECK(report.at("sides").at(1).at("validity").at("is_valid") == true);
  CHECK(report.at("sides").at(0).at("ok") > 0);
  CHECK(report.at("sides").at(0).at("ok") < report.at("sides").at(1).at("ok"));
  CHECK(are_gone(children));
}

TEST_CASE("load: the death of a side's only process ends the run", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  auto process =
      start_program(load.command(resources_of("127.0.0.1", backend.port), {"--duration", "600s"}));
  await_first_second(process);
  const auto children = children_of(process.pid());
  const auto side = std::ranges::find_if(children, is_side);
  REQUIRE(side != children.end());
  REQUIRE(::kill(*side, SIGKILL) == 0);
  const Finished finished = finish(process);
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors,
             Catch::Contains("the process of the signalbox side ended early: process "));
  CHECK(are_gone(children));
}

TEST_CASE("load: its children end when it is killed", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const std::string script =
      load.write("drill.yaml", "processes: {sleeper: {command: [sleep, 600]}}\nacts: []\n");
  auto process =
      start_program(load.command(resources_of("127.0.0.1", backend.port),
                                 {"--duration", "600s", "--script", script, "--processes", "2"}));
  await_first_second(process);
  const auto children = children_of(process.pid());
  CHECK(children.size() == 4);  // The control plane, the sleeper, and two processes of a side.
  process.send_signal(SIGKILL);
  CHECK(finish(process).status == 128 + SIGKILL);
  CHECK(are_gone(children));
}

TEST_CASE("load: bad input is an exit status of 2 and a sentence", "[e2e][load]") {
  const Load load;
  const std::string nowhere = resources_of("127.0.0.1", 1);

  struct Row {
    const char* script;
    std::vector<std::string> more;
    const char* sentence;
  };

  const Row row = GENERATE(
      Row{"acts: [{at: 1s, explode: x}]", {}, "line 1: acts[0]: 'explode' is no verb"},
      Row{"acts: [{at: 1s, kill: nginx}]", {}, "'nginx' is no process of this script"},
      Row{"acts: [{at: 1h, mark: late}]", {}, "comes after the end"},
      Row{"acts: [{at: 1s, drain: '10.0.0.1:1'}]", {}, "no endpoint has the address '10.0.0.1:1'"},
      Row{"processes: {p: {pidfile: /nowhere}}\nacts: []", {}, "/nowhere: cannot read a number"},
      Row{"processes: {p: {command: [/nowhere]}}\nacts: []", {}, "/nowhere cannot be run"},
      Row{"acts: []", {"--start-timeout", "100ms"}, "xds:///orders was not ready within 0.1 s"},
      Row{"acts: []", {"--fail-if", "lost"}, "--fail-if: 'lost': expected FIGURE>LIMIT"},
      Row{"acts: []", {"--rate", "1..2"}, "--rate: '1..2' is a ramp without a duration"},
      Row{"acts: []",
          {"--start-at", "2020-01-01T00:00:00Z"},
          "--start-at: '2020-01-01T00:00:00Z' passed"},
      Row{"acts: []",
          {"--session", "none"},
          "expected a whole number from 1 to 1000000, got 'none'"},
      Row{"acts: []", {"--processes", "65"}, "expected a number from 1 to 64, got '65'"},
      Row{"acts: []", {"--processes", "0"}, "expected a number from 1 to 64, got '0'"},
      Row{"acts: []",
          {"--processes", "3", "--session", "2"},
          "--processes 3 divides --session between the processes, and 2 is too few"},
      Row{"acts: []",
          {"--processes", "3", "--max-in-flight", "2"},
          "--processes 3 divides --max-in-flight between the processes, and 2 is too few"},
      Row{"acts: []",
          {"--metrics", "nowhere"},
          "--metrics: metrics cannot be served on 'nowhere': expected host:port, or a port of "
          "127.0.0.1"},
      Row{"acts: []", {"--protoset", "/dev/null"}, "no descriptor set"});
  auto command = load.command(nowhere, row.more);
  command.insert(command.end(), {"--script", load.write("drill.yaml", row.script)});
  const Finished finished = run_program(command);
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors, Catch::Contains(row.sentence));
}

TEST_CASE("load: --session without a number is one session", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const Finished finished = run_program(load.command(
      resources_of("127.0.0.1", backend.port), {"--session", "--rate", "50", "--duration", "1s"}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK(load.report().at("configuration").at("sessions") == 1);
}

TEST_CASE("load: calls begin at the time that --start-at names, and not before", "[e2e][load]") {
  const Backend backend(0);
  const Load load;
  const absl::Time start = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 5);
  const std::string text = absl::FormatTime(absl::RFC3339_full, start, absl::UTCTimeZone());
  const Finished finished =
      run_program(load.command(resources_of("127.0.0.1", backend.port),
                               {"--start-at", text, "--rate", "50", "--duration", "1s"}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const std::int64_t off =
      load.report().at("started_unix_ms").get<std::int64_t>() - absl::ToUnixMillis(start);
  // Both clocks are read one after the other, so a small difference is allowed.
  CHECK(std::abs(off) <= 10);
}

TEST_CASE("load: a dry run prints the timeline and starts nothing", "[e2e][load]") {
  const Load load;
  const std::string script = load.write(
      "drill.yaml", "processes: {p: {command: [/nowhere]}}\nacts: [{at: 2s, kill: p, for: 1s}]\n");
  auto command = load.command(resources_of("127.0.0.1", 1), {"--dry-run", "--script", script});
  const Finished finished = run_program(command);
  CHECK(finished.status == 0);
  CHECK_THAT(finished.output,
             Catch::Contains("about 1000 calls") && Catch::Contains("2.000s  SIGKILL to p") &&
                 Catch::Contains("3.000s  start of p"));
}

TEST_CASE("load: the options of the example for Kubernetes are understood", "[e2e][load]") {
  std::ifstream file(SIGNALBOX_CONF "/load/job.yaml");
  std::vector<std::string> command{SIGNALBOX_PROGRAM, "load", "--dry-run"};
  for (std::string line; std::getline(file, line);) {
    const absl::string_view item = absl::StripLeadingAsciiWhitespace(line);
    if (absl::StartsWith(item, "- --"))
      command.push_back(absl::StrReplaceAll(item.substr(2), {{"$(JOB_COMPLETION_INDEX)", "3"}}));
  }
  const Finished finished = run_program(command);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK_THAT(finished.output, Catch::Contains("500 calls a second (poisson) for 60 s"));
}

}  // namespace signalbox::test
