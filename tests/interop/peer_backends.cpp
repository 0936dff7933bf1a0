// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/peer_backends.hpp"

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/process.hpp"

namespace signalbox::test {
namespace {

tools::ChildProcess start(int count) {
  auto process =
      tools::ChildProcess::start({SIGNALBOX_PEER_BACKENDS, absl::StrCat("-count=", count)},
                                 {.capture_stderr = true, .pipe_stdin = true});
  INFO(process.status().ToString());
  REQUIRE(process.ok());
  return *std::move(process);
}

}  // namespace

PeerBackends::PeerBackends(int count) : process_(start(count)) {
  const auto listening = nlohmann::json::parse(event());
  REQUIRE(listening["event"] == "listening");
  for (const int port : listening["ports"])
    addresses_.push_back(absl::StrCat("127.0.0.1:", port));
}

void PeerBackends::restart(std::size_t backend) {
  REQUIRE(process_.write(absl::StrCat(backend, "\n")).ok());
  const auto restarted = nlohmann::json::parse(event());
  CHECK(restarted["event"] == "restarted");
  CHECK(restarted["backend"] == backend);
}

std::string PeerBackends::event() {
  auto line = process_.read_line(kPatience);
  INFO(line.status().ToString() << " " << process_.captured_errors());
  REQUIRE(line.ok());
  return *std::move(line);
}

}  // namespace signalbox::test
