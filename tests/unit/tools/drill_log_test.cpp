// SPDX-License-Identifier: Apache-2.0
#include "tools/drill_log.hpp"

#include <catch2/catch.hpp>

namespace signalbox::tools::drill_log_test {
namespace {

using namespace std::chrono_literals;

const CallTime kStart{1000s};

FinishedCall answer(std::chrono::nanoseconds at, const std::string& cluster) {
  FinishedCall call;
  call.due = call.started = call.ended = kStart + at;
  call.ok = true;
  call.cluster = cluster;
  return call;
}

FinishedCall failure(std::chrono::nanoseconds at, const std::string& cluster) {
  FinishedCall call = answer(at, cluster);
  call.ok = false;
  return call;
}

// The control plane is away from 1 s to 11 s. When it returns, it puts the second cluster first.
DrillLog log_after_return() {
  DrillLog log;
  log.left(kStart + 1s, "killed", "second", /*breaks_stream=*/true);
  log.add(answer(2s, "first"));
  log.add(failure(3s, "first"));
  log.returning(kStart + 10s);
  log.returned(kStart + 11s);
  return log;
}

}  // namespace

TEST_CASE("drill_log: the longest back-off follows from how long the server was away",
          "[tools][drill][A57]") {
  struct Row {
    std::chrono::nanoseconds away, longest;
  };

  // The first wait is 1 s, and each further wait is 1.6 times as long, but at most 120 s. Each is
  // then changed by up to ± 20 %. `longest` is the longest wait that can begin within the time
  // `away`, if all waits before it were as short as possible.
  const auto row = GENERATE(values<Row>({
      {0s, 1200ms},
      {799ms, 1200ms},
      {800ms, 1920ms},
      {2079ms, 1920ms},
      {2080ms, 3072ms},
      {10s, 7864320us},
      {1h, 144s},
  }));
  INFO(row.away.count());
  CHECK(std::chrono::abs(longest_backoff(row.away) - row.longest) < 1us);
}

TEST_CASE("drill_log: a change is in effect with the first answer of its cluster",
          "[tools][drill][S7]") {
  DrillLog log = log_after_return();
  CHECK_FALSE(log.is_in_effect());
  log.add(answer(11500ms, "first"));
  log.add(failure(11700ms, "second"));
  CHECK_FALSE(log.is_in_effect());
  CHECK(log.absences().back().reconvergence() == std::nullopt);
  log.add(answer(12s, "second"));
  log.add(answer(13s, "second"));
  CHECK(log.is_in_effect());
  const Absence& absence = log.absences().back();
  CHECK(absence.reconvergence() == 1s);
  CHECK(absence.away() == 10s);
  CHECK(absence.calls == 1);
  CHECK(absence.too_early == 0);
}

TEST_CASE("drill_log: who is told before we have read that the server is back took no time",
          "[tools][drill]") {
  DrillLog log;
  log.left(kStart, "replaced", "second", true);
  log.returning(kStart + 1s);
  log.add(answer(2s, "second"));
  log.returned(kStart + 3s);
  CHECK(log.is_in_effect());
  CHECK(log.absences().back().reconvergence() == 0s);
}

TEST_CASE("drill_log: what takes effect while nobody can have told of it is too early",
          "[tools][drill]") {
  DrillLog log;
  log.add(answer(500ms, "second"));
  log.left(kStart + 1s, "stopped", "second", /*breaks_stream=*/false);
  log.add(answer(900ms, "second"));
  CHECK(log.absences().back().too_early == 0);
  log.add(answer(2s, "second"));
  CHECK(log.absences().back().too_early == 1);
  CHECK_FALSE(log.is_in_effect());
}

TEST_CASE("drill_log: a stream that was not broken has no back-off to wait for",
          "[tools][drill][S7]") {
  DrillLog log = log_after_return();
  CHECK(log.absences().back().bound() == longest_backoff(10s) + 5s);
  log.left(kStart + 20s, "stopped", "third", /*breaks_stream=*/false);
  log.returning(kStart + 30s);
  log.returned(kStart + 30s);
  CHECK(log.absences().back().bound() == 5s);
}

TEST_CASE("drill_log: each absence has its own change", "[tools][drill]") {
  DrillLog log = log_after_return();
  log.add(answer(12s, "second"));
  log.left(kStart + 20s, "replaced", "first", true);
  CHECK_FALSE(log.is_in_effect());
  log.add(answer(20500ms, "second"));
  log.returning(kStart + 21s);
  log.returned(kStart + 22s);
  log.add(answer(23s, "second"));
  CHECK_FALSE(log.is_in_effect());
  log.add(answer(24s, "first"));
  REQUIRE(log.absences().size() == 2);
  CHECK(log.absences()[0].reconvergence() == 1s);
  CHECK(log.absences()[1].reconvergence() == 2s);
  CHECK(log.absences()[1].too_early == 0);
}

}  // namespace signalbox::tools::drill_log_test
