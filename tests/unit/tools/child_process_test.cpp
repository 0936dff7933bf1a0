// SPDX-License-Identifier: Apache-2.0
#include "tools/child_process.hpp"

#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

TEST_CASE("child process: what is written is its stdin, whose end it sees", "[tools]") {
  auto cat = ChildProcess::start({"/bin/cat"}, {.capture_stderr = true, .pipe_stdin = true});
  REQUIRE(cat.ok());
  REQUIRE(cat->write("one\ntwo\n").ok());
  CHECK(cat->read_line(kPatience).value_or("") == "one");
  CHECK(cat->read_line(kPatience).value_or("") == "two");
  cat->close_input();
  CHECK(cat->wait(kPatience).value_or(-1) == 0);
}

TEST_CASE("child process: writing to one that has ended is an error, and no signal", "[tools]") {
  auto gone = ChildProcess::start({"/bin/true"}, {.capture_stderr = true, .pipe_stdin = true});
  REQUIRE(gone.ok());
  REQUIRE(gone->wait(kPatience).value_or(-1) == 0);
  CHECK(gone->write("anybody there?").code() == absl::StatusCode::kInternal);
}

TEST_CASE("child process: stdin is empty where nothing was asked", "[tools]") {
  auto cat = ChildProcess::start({"/bin/cat"}, {.capture_stderr = true});
  REQUIRE(cat.ok());
  CHECK(cat->wait(kPatience).value_or(-1) == 0);
  CHECK_FALSE(cat->write("anybody there?").ok());
}

TEST_CASE("child process: chosen variables stay out of its environment", "[tools]") {
  ::setenv("SIGNALBOX_BACKEND_NAME", "a", 1);
  ::setenv("SIGNALBOX_SERVE_LISTEN", "b", 1);
  ::setenv("SIGNALBOX_CONFIG", "c", 1);
  ::setenv("SIGNALBOX_CONFIG_TOO", "d", 1);
  const auto variables = [](const std::vector<std::string>& without) {
    auto env = ChildProcess::start({"/usr/bin/env"}, {.without = without});
    REQUIRE(env.ok());
    std::set<std::string> found;
    for (auto line = env->read_line(kPatience); line.ok(); line = env->read_line(kPatience)) {
      if (absl::StartsWith(*line, "SIGNALBOX_")) found.insert(*line);
    }
    return found;
  };
  const std::set<std::string> all = variables({});
  std::set<std::string> expected = all;
  CHECK(expected.erase("SIGNALBOX_BACKEND_NAME=a") == 1);
  CHECK(expected.erase("SIGNALBOX_CONFIG=c") == 1);
  CHECK(expected.contains("SIGNALBOX_SERVE_LISTEN=b"));
  CHECK(expected.contains("SIGNALBOX_CONFIG_TOO=d"));
  CHECK(variables({"SIGNALBOX_BACKEND_", "SIGNALBOX_CONFIG="}) == expected);
  for (const char* name : {"SIGNALBOX_BACKEND_NAME",
                           "SIGNALBOX_SERVE_LISTEN",
                           "SIGNALBOX_CONFIG",
                           "SIGNALBOX_CONFIG_TOO"})
    ::unsetenv(name);
}

}  // namespace signalbox::tools
