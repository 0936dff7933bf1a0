// SPDX-License-Identifier: Apache-2.0
#include "lb/health/slow_start.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

// A100 and Envoy treat an age below one second as one second.
constexpr Duration kLeastAge = std::chrono::seconds(1);
constexpr Duration kShortestStep = std::chrono::seconds(1);
constexpr int kSteps = 20;

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

double slow_start_factor(const SlowStart& rules, Duration age) {
  if (age >= rules.window) return 1;
  const double time_factor = seconds_of(std::max(age, kLeastAge)) / seconds_of(rules.window);
  const double risen = std::pow(time_factor, 1 / rules.aggression);
  const double least = std::max(rules.min_weight_percent / 100, kLeastSlowStartFactor);
  return std::clamp(risen, least, 1.0);
}

std::string factor_text(double factor) {
  constexpr std::uint64_t kWhole = 10'000;
  return percent(static_cast<std::uint64_t>(std::lround(factor * kWhole)), kWhole);
}

Duration slow_start_step(const SlowStart& rules) {
  return std::max<Duration>(rules.window / kSteps, kShortestStep);
}

std::string slow_start_ramp(const SlowStart& rules) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr int kCells = 8;
  std::string text;
  for (int cell = 0; cell < kCells; ++cell) {
    const double factor = slow_start_factor(rules, rules.window * (2 * cell + 1) / (2 * kCells));
    text += kBars[std::clamp(static_cast<int>(std::ceil(factor * kCells)) - 1, 0, kCells - 1)];
  }
  for (int quarter = 0; quarter < 4; ++quarter) {
    const Duration age = rules.window * quarter / 4;
    absl::StrAppend(
        &text,
        " ",
        factor_text(slow_start_factor(rules, age)),
        quarter == 0 ? " of its weight at first," : absl::StrCat(" after ", shown(age), ","));
  }
  return absl::StrCat(text, " all of it after ", shown(rules.window));
}

}  // namespace signalbox::lb
