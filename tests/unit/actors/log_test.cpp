// SPDX-License-Identifier: Apache-2.0
#include "actors/log.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::actors::log_test {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1h};

LogLine line_of_kind(LogKind kind, LogLevel level = LogLevel::kWarning) {
  return {level, kind, "text"};
}

}  // namespace

TEST_CASE("log limit: a burst of each kind, then one line every so often", "[actors][log]") {
  LogLimit limit;
  for (std::uint32_t i = 0; i < LogLimit::kBurst; ++i)
    REQUIRE(limit.admit(LogKind::kPriority, kStart) == 0U);
  CHECK_FALSE(limit.admit(LogKind::kPriority, kStart));
  CHECK_FALSE(limit.admit(LogKind::kPriority, kStart + LogLimit::kEvery - 1ns));
  CHECK(limit.admit(LogKind::kEjection, kStart) == 0U);  // Each kind has its own limit.
  CHECK(limit.admit(LogKind::kPriority, kStart + LogLimit::kEvery) == 2U);
  CHECK_FALSE(limit.admit(LogKind::kPriority, kStart + LogLimit::kEvery));
  CHECK(limit.admit(LogKind::kPriority, kStart + 2 * LogLimit::kEvery) == 1U);
}

TEST_CASE("log limit: no kind of event takes lines of another kind", "[actors][log]") {
  LogLimit limit;
  for (std::size_t noisy = 0; noisy < kLogKinds; ++noisy) {
    const auto kind = static_cast<LogKind>(noisy);
    CAPTURE(std::string(to_string(kind)));
    for (std::uint32_t i = 0; i < LogLimit::kBurst; ++i)
      REQUIRE(limit.admit(kind, kStart) == 0U);
    CHECK_FALSE(limit.admit(kind, kStart));
  }
}

TEST_CASE("log limit: after a quiet time the whole burst is there again", "[actors][log]") {
  LogLimit limit;
  const auto burst = [&](Instant now) {
    std::uint32_t admitted = 0;
    while (limit.admit(LogKind::kActor, now))
      ++admitted;
    return admitted;
  };
  CHECK(burst(kStart) == LogLimit::kBurst);
  CHECK(burst(kStart + 24h) == LogLimit::kBurst);
}

TEST_CASE("log: levels below the least are dropped, and do not count as left out",
          "[actors][log]") {
  std::vector<LogLine> lines;
  Instant now = kStart;
  Log log(
      LogLevel::kWarning, [&](const LogLine& line) { lines.push_back(line); }, [&] { return now; });
  for (int i = 0; i < 1000; ++i)
    log.write(line_of_kind(LogKind::kPriority, LogLevel::kInfo));
  log.write(line_of_kind(LogKind::kPriority));
  log.write(line_of_kind(LogKind::kPriority, LogLevel::kError));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == LogLine{LogLevel::kWarning, LogKind::kPriority, "text", 0});
  CHECK(lines[1].level == LogLevel::kError);
}

TEST_CASE("log: the next line says how many were left out, and control characters are escaped",
          "[actors][log]") {
  std::vector<LogLine> lines;
  Instant now = kStart;
  Log log(
      LogLevel::kInfo, [&](const LogLine& line) { lines.push_back(line); }, [&] { return now; });
  for (std::uint32_t i = 0; i < LogLimit::kBurst + 7; ++i)
    log.write(line_of_kind(LogKind::kConfigRefused));
  CHECK(lines.size() == LogLimit::kBurst);
  now += LogLimit::kEvery;
  log.write({LogLevel::kWarning, LogKind::kConfigRefused, "bad\n\x1b[31mname"});
  REQUIRE(lines.size() == LogLimit::kBurst + 1);
  CHECK(lines.back().text == "bad\\n\\x1b[31mname");
  CHECK(lines.back().left_out == 7);
  CHECK(text_of(lines.back()) == "bad\\n\\x1b[31mname (7 like it were left out before)");
}

TEST_CASE("log: threads may write at once", "[actors][log]") {
  std::atomic<std::uint64_t> seen = 0;
  std::atomic<std::uint64_t> left_out = 0;
  std::atomic<Instant::rep> ticks = 0;
  Log log(
      LogLevel::kInfo,
      [&](const LogLine& line) {
        ++seen;
        left_out += line.left_out;
      },
      [&] { return kStart + LogLimit::kEvery / 10 * ++ticks; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n)
        log.write(line_of_kind(LogKind::kActor));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(seen >= 400);
  CHECK(seen + left_out <= 4000);
}

}  // namespace signalbox::actors::log_test
