// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>

namespace signalbox::test {
namespace {

struct Stat {
  bool is_alive = false;
  pid_t parent = 0;
};

Stat stat_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return {};
  std::istringstream rest(
      text.substr(text.rfind(')') + 1));  // The name in brackets may itself contain brackets.
  char state = 'X';
  Stat stat;
  rest >> state >> stat.parent;
  stat.is_alive = state != 'Z' && state != 'X';
  return stat;
}

}  // namespace

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
  return stat_of(pid).is_alive;
}

bool are_gone(const std::vector<pid_t>& pids) {
  return eventually([&] { return std::ranges::none_of(pids, is_alive); });
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Stat stat = stat_of(std::stoi(name));
    if (stat.is_alive && stat.parent == pid) children.push_back(std::stoi(name));
  }
  return children;
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
