// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_script.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tools/stop_signals.hpp"

namespace signalbox::tools {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kGlance = std::chrono::milliseconds(20);  // Interval between checks of a condition.
// A shorter last interval gets no line.
constexpr auto kWorthTelling = std::chrono::milliseconds(100);

}  // namespace

Narrator::Narrator(Line line)
    : line_(std::move(line)), start_(Clock::now()), reported_(start_), next_(start_ + kTick) {}

std::optional<int> Narrator::wait_until(Clock::time_point due, const std::function<bool()>& holds) {
  for (;;) {
    const auto now = Clock::now();
    if (now >= due || (holds && holds())) return std::nullopt;
    Clock::time_point wake = std::min(due, next_);
    if (holds) wake = std::min<Clock::time_point>(wake, now + kGlance);
    if (const auto signal = wait_for_stop(wake - now)) return signal;
    if (const auto then = Clock::now(); then >= next_) tell(then);
  }
}

void Narrator::announce(const std::string& act) const {
  const std::chrono::duration<double> passed = Clock::now() - start_;
  std::cout << absl::StrFormat("%6.1f s ── %s", passed.count(), act) << std::endl;
}

void Narrator::end() {
  if (const auto now = Clock::now(); now - reported_ > kWorthTelling) tell(now);
}

void Narrator::tell(Clock::time_point now) {
  std::cout << line_(now - start_, now - reported_) << std::endl;
  reported_ = now;
  while (next_ <= now)
    next_ += kTick;  // An act may have taken longer than a tick.
}

int end_early(const absl::Status& status, int exit_status) {
  say("demo", status.message());
  return exit_status;
}

int end_early(int signal) {
  say("demo", absl::StrCat("stopped by ", ::strsignal(signal)));
  return 128 + signal;
}

int publish(const DemoOptions& options, DemoStage& stage, const DemoOutcome& outcome) {
  std::cout << "\n" << outcome.table << std::flush;
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << outcome.data.dump(2) << "\n" << std::flush;
    if (!file) return end_early(absl::InternalError(absl::StrCat("cannot write ", options.json)));
  }
  if (auto status = stage.write_page(outcome.failure, outcome.notes); !status.ok())
    return end_early(status);
  if (outcome.failure.empty()) return kExitOk;
  say("demo", outcome.failure);
  return kExitFailed;
}

}  // namespace signalbox::tools
