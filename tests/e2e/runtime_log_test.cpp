// SPDX-License-Identifier: Apache-2.0
//
// The lines that a runtime has for its operator, with their levels and kinds.
#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

class Lines {
 public:
  std::function<void(const LogLine&)> sink() {
    return [this](const LogLine& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }

  bool has(LogLevel level, LogKind kind, const std::string& part) const {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      return std::ranges::any_of(lines_, [&](const LogLine& line) {
        return line.level == level && line.kind == kind && absl::StrContains(line.text, part);
      });
    });
  }

  std::size_t count(LogLevel level) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(lines_, level, &LogLine::level));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LogLine> lines_;
};

}  // namespace

TEST_CASE("log: one line for each event of a life", "[e2e][runtime][log]") {
  BackendProcess primary("primary");
  const BackendProcess secondary("secondary");
  const std::string world =
      listener_yaml("orders", "orders") + routes_yaml("orders", "c") + cluster_yaml("c");
  const std::string endpoints = endpoints_yaml("c", {{primary.address}, {secondary.address}});
  const auto plane = start_plane(world + endpoints);
  Lines lines;  // Outlives the runtime.
  RuntimeOptions options = options_for(plane->address());
  options.log_line = lines.sink();
  options.log_level = LogLevel::kInfo;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  CHECK(lines.has(
      LogLevel::kInfo, LogKind::kConfigApplied, "xds:///orders: calls follow configuration "));

  primary.process.send_signal(SIGKILL);
  REQUIRE(eventually([&] { return call(channel).cluster == "secondary"; }));
  CHECK(lines.has(
      LogLevel::kWarning, LogKind::kPriority, "cluster c: calls go to a lower priority: "));

  plane->update(resources(replaced(cluster_yaml("c"), "EDS", "99")));
  CHECK(lines.has(LogLevel::kWarning, LogKind::kConfigRefused, ": CDS version "));
  CHECK(lines.has(LogLevel::kWarning, LogKind::kConfigRefused, "refused 1 resource: c: "));

  plane->stop();
  CHECK(lines.has(LogLevel::kWarning, LogKind::kControlPlane, plane->address() + " is lost: "));
  REQUIRE(plane->start_again().ok());
  CHECK(lines.has(LogLevel::kInfo, LogKind::kControlPlane, plane->address() + " is back"));
}

TEST_CASE("log: by default there are no lines of information", "[e2e][runtime][log]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  Lines lines;
  RuntimeOptions options = options_for(plane->address());
  options.log_line = lines.sink();
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  plane->stop();
  CHECK(lines.has(LogLevel::kWarning, LogKind::kControlPlane, " is lost: "));
  CHECK(lines.count(LogLevel::kInfo) == 0);
}

TEST_CASE("log: a line for which stderr has no room is counted, and later lines are written",
          "[e2e][runtime][log][S18]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(before >= 0);
  const auto fill = [&] {
    const std::string bytes(4096, 'x');
    while (::write(ends[1], bytes.data(), bytes.size()) > 0) {
    }
    while (::write(ends[1], "x", 1) > 0) {
    }
  };
  const auto drain = [&] {
    std::string all;
    std::array<char, 4096> part;
    for (ssize_t size = 0; (size = ::read(ends[0], part.data(), part.size())) > 0;)
      all.append(part.data(), static_cast<std::size_t>(size));
    return all;
  };
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto lost_lines = [&](int lines) {
    const std::string series = absl::StrCat("signalbox_log_lines_lost_total ", lines, "\n");
    return absl::StrContains(runtime->metrics_text(), series);
  };
  CHECK(lost_lines(0));
  fill();
  ::dup2(ends[1], STDERR_FILENO);
  const auto channel = runtime->channel("xds:///orders");
  const bool is_answered = call(channel).ok();
  const bool is_counted = eventually([&] { return !lost_lines(0); });
  drain();
  plane->stop();
  std::string later;
  const bool is_written = eventually([&] {
    later += drain();
    return absl::StrContains(later, " is lost: ");
  });
  ::dup2(before, STDERR_FILENO);
  for (const int descriptor : {before, ends[0], ends[1]})
    ::close(descriptor);
  CHECK(is_answered);
  CHECK(is_counted);
  CHECK(is_written);
}

TEST_CASE("log: two sinks are an error of start()", "[e2e][runtime][log]") {
  RuntimeOptions options = options_for("127.0.0.1:1");
  options.log = [](const std::string&) {};
  options.log_line = [](const LogLine&) {};
  CHECK_THAT(std::string(Runtime::start(std::move(options)).status().message()),
             Contains("RuntimeOptions::log, log_line: only one of them may be set"));
}

}  // namespace signalbox::test
