// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <fstream>
#include <thread>

#include <catch2/catch.hpp>

namespace signalbox::test {

tools::ChildProcess start_program(const std::vector<std::string>& argv) {
  auto process = tools::ChildProcess::start(argv, {.capture_stderr = true});
  INFO(process.status().ToString());
  REQUIRE(process.ok());
  return *std::move(process);
}

Finished finish(tools::ChildProcess& process, std::chrono::milliseconds at_most) {
  const auto status = process.wait(at_most);
  return {.status = status.value_or(-1),
          .output = process.unread_output(),
          .errors = process.captured_errors()};
}

Finished run_program(const std::vector<std::string>& argv) {
  auto process = start_program(argv);
  return finish(process);
}

bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const auto state = text.rfind(')') + 2;  // The name before it may hold anything.
  return state < text.size() && text[state] != 'Z' && text[state] != 'X';
}

bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace signalbox::test
