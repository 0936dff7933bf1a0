// SPDX-License-Identifier: Apache-2.0
#include "tools/child_process.hpp"

#include <chrono>
#include <string>

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

}  // namespace signalbox::tools
