// SPDX-License-Identifier: Apache-2.0
//
// `signalbox top` as a process, in a terminal or in a pipe.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <signal.h>

#include "tests/support/process.hpp"
#include "tests/support/talking_socket.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/terminal.hpp"

namespace signalbox::test::top_test {
namespace {

// A sanitized top takes longer to start.
#if defined(__SANITIZE_ADDRESS__)
constexpr char kSeconds[] = "60";
#else
constexpr char kSeconds[] = "12";
#endif

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string metrics(int started) {
  const std::string body =
      "signalbox_xds_connected{xds_server=\"a\"} 1\n"
      "signalbox_priority_active{cluster=\"orders\"} 0\n"
      "signalbox_rpcs_started_total{target=\"t\",cluster=\"orders\"} " +
      std::to_string(started) + "\n";
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

// The last frame: what follows the last "cursor to the top left".
std::string last_frame(const std::string& shown) {
  const auto at = shown.rfind("\x1b[H");
  return at == std::string::npos ? "" : shown.substr(at);
}

// The greatest rate of calls in all frames so far.
double greatest_rate(const std::string& shown) {
  constexpr char kRate[] = "calls/s ";
  double greatest = 0;
  for (auto at = shown.find(kRate); at != std::string::npos; at = shown.find(kRate, at + 1))
    greatest = std::max(greatest, std::strtod(shown.c_str() + at + sizeof(kRate) - 1, nullptr));
  return greatest;
}

std::vector<std::string> top(const std::string& address, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {SIGNALBOX_PROGRAM, "top", "--admin", address, "--interval", "0.1"});
  return more;
}

}  // namespace

TEST_CASE("top: in a terminal it draws a table, follows the size, and ends with q",
          "[e2e][tools][top]") {
  TalkingSocket process(metrics(0), "\r\n\r\n");
  TerminalProgram program(top(process.address()), {.columns = 100, .rows = 20});
  REQUIRE(program.eventually_shows([](const std::string& shown) {
    return contains(shown, "\x1b[?1049h") && contains(last_frame(shown), "orders");
  }));
  CHECK(contains(program.shown(), "CLUSTER"));
  CHECK(contains(program.shown(), "control plane 1/1"));

  // The counter stands still, so the rate is 0.
  CHECK(program.eventually_shows(
      [](const std::string& shown) { return contains(last_frame(shown), "calls/s 0.0"); }));
  // The counter grows between two reads, and the program shows a rate.
  process.say(metrics(1000));
  CHECK(
      program.eventually_shows([](const std::string& shown) { return greatest_rate(shown) > 0; }));

  program.resize({.columns = 20, .rows = 4});
  CHECK(program.eventually_shows([](const std::string& shown) {
    const std::string frame = last_frame(shown);
    return contains(frame, "\x1b[J") && !contains(frame, "control plane");
  }));

  program.type("x");  // A key without a meaning.
  program.type("q");
  CHECK(program.finish() == 0);
  // The terminal is restored: the normal screen, and a visible cursor.
  const std::string& shown = program.shown();
  CHECK(shown.rfind("\x1b[?1049l") > shown.rfind("\x1b[H"));
  CHECK(shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"));
}

TEST_CASE("top: in a terminal a process that is lost is said, and found again",
          "[e2e][tools][top]") {
  TalkingSocket process(metrics(5), "\r\n\r\n");
  TerminalProgram program(top(process.address()), {.columns = 120, .rows = 20});
  REQUIRE(program.eventually_shows(
      [](const std::string& shown) { return contains(last_frame(shown), "orders"); }));
  process.close();
  REQUIRE(program.eventually_shows([](const std::string& shown) {
    const std::string frame = last_frame(shown);
    return contains(frame, "no process listens there") && contains(frame, "orders");
  }));
  process.listen();
  CHECK(program.eventually_shows([](const std::string& shown) {
    const std::string frame = last_frame(shown);
    return contains(frame, "\x1b[J") && !contains(frame, "no process listens there");
  }));
  ::kill(program.pid(), SIGTERM);
  CHECK(program.finish() == 0);
}

TEST_CASE("top: a terminal that closes ends it", "[e2e][tools][top]") {
  TalkingSocket process(metrics(5), "\r\n\r\n");
  TerminalProgram program(top(process.address()));
  REQUIRE(program.eventually_shows(
      [](const std::string& shown) { return contains(last_frame(shown), "orders"); }));
  program.hang_up();
  CHECK(program.finish().has_value());
}

TEST_CASE("top: in a pipe it writes lines without escapes", "[e2e][tools][top]") {
  TalkingSocket process(metrics(7), "\r\n\r\n");
  const Finished finished = run_program(top(process.address(), {"--count", "3"}));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  CHECK_FALSE(contains(finished.output, "\x1b"));
  CHECK(std::count(finished.output.begin(), finished.output.end(), '\n') == 3);
  CHECK(contains(finished.output, " cluster=orders priority=0 calls_per_second=0 active=0"));

  auto lost = start_program(top(process.address()));
  REQUIRE(lost.read_line(kPatience).ok());
  process.close();
  const Finished end = finish(lost);
  CHECK(end.status == 1);
  CHECK(contains(end.errors, "no process listens there"));
}

TEST_CASE("top: what is no process of signalbox is an error at once", "[e2e][tools][top]") {
  CHECK(run_program(top("unix:no-such.sock")).status == 2);
  TalkingSocket other("HTTP/1.1 200 OK\r\n\r\n<html>", "\r\n\r\n");
  const Finished finished = run_program(top(other.address()));
  CHECK(finished.status == 1);
  CHECK(contains(finished.errors, "line 1 is no sample of a metric"));
}

TEST_CASE("top: beside a demo it shows the calls, and the failover", "[e2e][tools][top]") {
  const TemporaryFolder folder;
  const std::string address = "unix:" + folder.path("admin.sock");
  auto demo = start_program({SIGNALBOX_PROGRAM, "demo", "--seconds", kSeconds, "--admin", address});
  for (std::string line; !contains(line, "admin pages on");) {
    auto next = demo.read_line(kPatience);
    REQUIRE(next.ok());
    line = *std::move(next);
  }
  auto watching = start_program(top(address));
  bool calls = false;
  bool failover = false;
  while (!calls || !failover) {
    const auto line = watching.read_line(kPatience);
    INFO(watching.captured_errors());
    REQUIRE(line.ok());
    calls = calls || (contains(*line, " cluster=orders-primary aggregate=orders") &&
                      contains(*line, " calls_per_second=") &&
                      !contains(*line, " calls_per_second=0 ") && contains(*line, " ready=3 "));
    failover = failover || contains(*line, " cluster=orders failover=down reason=failed");
  }
  watching.send_signal(SIGINT);
  CHECK(finish(watching).status == 0);
  demo.send_signal(SIGINT);
  finish(demo);
}

}  // namespace signalbox::test::top_test
