// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/health_check_core.hpp"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

Duration within_a_pause(Duration time) {
  return std::min(time, HealthCheckCore::kLongestPause);
}

}  // namespace

HealthCheckCore::HealthCheckCore(HealthCheckOptions options) : options_(std::move(options)) {
  SIGNALBOX_INVARIANT(options_.checks != nullptr && !options_.checks->empty(),
                      "there is something to check");
  courses_.resize(options_.checks->size());
}

HealthCheckEffects HealthCheckCore::step(const HealthCheckEvent& event, Instant /*now*/) {
  HealthCheckEffects effects;
  std::visit([&](const auto& it) { on(it, effects); }, event);
  return effects;
}

void HealthCheckCore::on(const HealthChecksBegun& /*event*/, HealthCheckEffects& effects) {
  for (std::size_t check = 0; check < courses_.size(); ++check) {
    const Duration most = within_a_pause((*options_.checks)[check].initial_jitter);
    if (most == Duration::zero()) {
      ++courses_[check].number;
      probe(check, effects);
    } else {
      wait(check, up_to(most, check, 0), effects);
    }
  }
}

void HealthCheckCore::on(const TimerFired& event, HealthCheckEffects& effects) {
  std::size_t check = 0;
  if (!absl::SimpleAtoi(event.timer.name, &check) || check >= courses_.size()) return;
  if (courses_[check].number != event.timer.generation || courses_[check].is_probing) return;
  probe(check, effects);
}

void HealthCheckCore::on(const ProbeEnded& event, HealthCheckEffects& effects) {
  if (event.check >= courses_.size()) return;
  Course& course = courses_[event.check];
  if (!course.is_probing || event.number != course.number) return;
  course.is_probing = false;
  if (event.outcome != ProbeOutcome::kUndone) judge(event, effects);
  wait(event.check, pause_of(event.check), effects);
}

void HealthCheckCore::judge(const ProbeEnded& event, HealthCheckEffects& effects) {
  Course& course = courses_[event.check];
  const HealthCheck& check = (*options_.checks)[event.check];
  const bool passed = event.outcome == ProbeOutcome::kPassed;
  effects.push_back(Observe{HealthProbed{options_.cluster, passed, event.delayed}});
  const Verdict spoken_for = passed ? Verdict::kFit : Verdict::kUnfit;
  if (course.verdict == spoken_for) {
    course.against = 0;
  } else {
    const std::uint32_t enough = passed ? check.healthy_threshold : check.unhealthy_threshold;
    const bool decides_alone =
        course.verdict == Verdict::kUnknown || event.outcome == ProbeOutcome::kRefused;
    if (++course.against >= enough || decides_alone) {
      course.verdict = spoken_for;
      course.against = 0;
      course.why = passed ? "" : event.why;
    }
  }
  report(effects);
}

void HealthCheckCore::wait(std::size_t check, Duration pause, HealthCheckEffects& effects) {
  const std::uint64_t number = ++courses_[check].number;
  effects.push_back(StartTimer{TimerId{absl::StrCat(check), number}, pause});
}

void HealthCheckCore::probe(std::size_t check, HealthCheckEffects& effects) {
  courses_[check].is_probing = true;
  effects.push_back(StartProbe{check, courses_[check].number});
}

// A random time from [0, most]. It depends on the seed, the arguments and the number of the check's
// newest timer, so each pause draws another time.
Duration HealthCheckCore::up_to(Duration most, std::size_t check, std::uint64_t which) const {
  const std::uint64_t seed = draw(options_.seed, Salt::kEndpoint, check);
  const std::uint64_t step = 3 * courses_[check].number + which;
  const auto bound = static_cast<std::uint64_t>(most.count()) + 1;
  return Duration(static_cast<Duration::rep>(draw_below(seed, Salt::kEndpoint, bound, step)));
}

Duration HealthCheckCore::pause_of(std::size_t at) const {
  const HealthCheck& check = (*options_.checks)[at];
  const Duration interval = within_a_pause(check.interval);
  const Duration pause = interval + up_to(within_a_pause(check.interval_jitter), at, 1) +
                         up_to(interval * check.interval_jitter_percent / 100, at, 2);
  return std::clamp(pause, kShortestPause, kLongestPause);
}

void HealthCheckCore::report(HealthCheckEffects& effects) {
  const auto is = [](Verdict verdict) {
    return [verdict](const Course& course) { return course.verdict == verdict; };
  };
  const auto unfit = std::ranges::find_if(courses_, is(Verdict::kUnfit));
  const bool is_fit = unfit == courses_.end();
  if (is_fit && std::ranges::any_of(courses_, is(Verdict::kUnknown))) return;
  if (reported_.has_value() && reported_->ok() == is_fit) return;
  reported_ = is_fit ? absl::OkStatus()
                     : absl::UnavailableError(absl::StrCat("health check failed: ", unfit->why));
  effects.push_back(ReportHealth{*reported_});
}

}  // namespace signalbox::lb
