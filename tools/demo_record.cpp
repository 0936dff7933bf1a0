// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_record.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace signalbox::tools {
namespace {

using std::chrono::nanoseconds;

constexpr const char* kSide = "signalbox";

// A threshold that is missed when `measured` is not 0.
LoadThreshold none_may(std::string text, std::uint64_t measured) {
  return {.text = std::move(text),
          .side = kSide,
          .fault = {},
          .measured = static_cast<double>(measured),
          .limit = 0,
          .unit = "calls",
          .is_missed = measured > 0};
}

nanoseconds time_of(double seconds) {
  return std::chrono::round<nanoseconds>(std::chrono::duration<double>(seconds));
}

}  // namespace

DemoRecord::DemoRecord(CallTime begin, double seconds)
    : begin_(begin), recorder_(kSide, /*sessions=*/0, time_of(seconds)), collector_(recorder_) {}

void DemoRecord::add(const OpenLoop::Drained& drained, CallTime now) {
  collector_.add(drained.sent, drained.ended, drained.endpoints);
  collector_.advance(since_begin(now));
}

void DemoRecord::place(const std::string& address, const RankedPlace& place) {
  recorder_.place(address, place);
}

void DemoRecord::act_begins(CallTime now, const DemoAct& act) {
  std::string name = absl::StrCat(act.verb, act.on.empty() ? "" : " ", act.on);
  const auto same = std::ranges::count(acts_, name, [](const LoadFault& other) {
    return other.name.substr(0, other.name.find('#'));
  });
  if (same > 0) absl::StrAppend(&name, "#", same + 1);
  const std::int64_t at_ns = since_begin(now);
  collector_.add_act(at_ns, act.is_fault);
  acts_.push_back({.name = std::move(name),
                   .verb = act.verb,
                   .what = act.what,
                   .planned_ns = at_ns,
                   .at_ns = at_ns,
                   .is_fault = act.is_fault,
                   .error = {}});
}

LoadReport DemoRecord::finish(CallTime end,
                              LoadConfiguration configuration,
                              const std::map<std::string, std::uint64_t>& messages,
                              const DemoVerdict& verdict) {
  collector_.flush();
  const std::int64_t ran_ns = since_begin(end);
  LoadReport report;
  report.ran_s = static_cast<double>(ran_ns) / 1e9;
  report.configuration = std::move(configuration);
  report.configuration.duration_s = report.ran_s;
  report.faults = std::move(acts_);
  report.sides.push_back(recorder_.finish(nanoseconds(ran_ns), kMostLatenessP99Ns, messages));
  const bool has_failed = !verdict.failure.empty();
  report.thresholds = {
      none_may("failed otherwise > 0", verdict.failed_other),
      none_may("failed checks of the demo > 0", has_failed ? 1 : 0),
  };
  report.notes = verdict.notes;
  if (has_failed) report.notes.push_back(verdict.failure);
  report.exit_status = has_failed ? 1 : 0;
  return report;
}

std::int64_t DemoRecord::since_begin(CallTime time) const {
  return nanoseconds(time - begin_).count();
}

}  // namespace signalbox::tools
