// SPDX-License-Identifier: Apache-2.0
#include "tools/load/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace signalbox::tools {
namespace {

absl::Status wrong(absl::string_view part, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", part, "' ", why, "; expected RATE, RATE/DURATION or FROM..TO/DURATION"));
}

bool read_rate(absl::string_view text, double& rate) {
  return absl::SimpleAtod(text, &rate) && rate >= 0 && rate <= kMostRate;
}

absl::StatusOr<RatePart> parse_part(absl::string_view text, bool is_last) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  const bool is_ramp = absl::StrContains(halves.first, "..");
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(halves.first, absl::MaxSplits("..", 1));
  RatePart part;
  if (!read_rate(ends.first, part.from) || !read_rate(is_ramp ? ends.second : ends.first, part.to))
    return wrong(text, absl::StrCat("has no rate of 0 to ", kMostRate));
  if (absl::StrContains(text, '/')) {
    absl::Duration duration;
    if (!absl::ParseDuration(halves.second, &duration) || duration <= absl::ZeroDuration() ||
        duration > absl::Hours(24 * 365))
      return wrong(text, "has no duration, such as 30s or 1m30s, after its /");
    part.seconds = absl::ToDoubleSeconds(duration);
  } else if (is_ramp) {
    return wrong(text, "is a ramp without a duration");
  } else if (!is_last) {
    return wrong(text, "has no duration, and another part follows");
  }
  return part;
}

// Expected calls from the beginning of the part until `seconds` later.
double calls_of(const RatePart& part, double seconds) {
  if (part.from == part.to) return part.from * seconds;
  return part.from * seconds + (part.to - part.from) / part.seconds * seconds * seconds / 2;
}

// The inverse of calls_of(). This form of the quadratic's root loses no digits for small slopes.
double seconds_of(const RatePart& part, double calls) {
  if (calls <= 0) return 0;  // Not 0/0, if the part begins at a rate of 0.
  if (part.from == part.to) return calls / part.from;
  const double slope = (part.to - part.from) / part.seconds;
  const double root = std::sqrt(std::max(0.0, part.from * part.from + 2 * slope * calls));
  return 2 * calls / (part.from + root);
}

}  // namespace

absl::StatusOr<RateProfile> parse_rate(absl::string_view text) {
  RateProfile profile;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    auto part = parse_part(parts[i], is_last);
    if (!part.ok()) return part.status();
    profile.push_back(*part);
    // The rate at the end of a ramp or a step stays.
    if (is_last && part->seconds > 0) profile.push_back({.from = part->to, .to = part->to});
  }
  if (profile.back().to <= 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "'",
        text,
        "' ends at 0 calls a second; end it with a rate of more than 0, or end the run "
        "earlier by --duration"));
  return profile;
}

absl::StatusOr<absl::Time> parse_start(absl::string_view text, absl::Time now) {
  absl::Time start;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &start, &error))
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no time such as 2026-11-26T13:00:00Z or 2026-11-26T14:00:00+01:00"));
  if (start <= now)
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' passed ", absl::FormatDuration(now - start), " ago"));
  if (start - now > absl::Hours(24))
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than a day away"));
  return start;
}

RateProfile with_warmup(RateProfile profile, double seconds) {
  if (seconds <= 0) return profile;
  const double rate = profile.front().from;
  profile.insert(profile.begin(), {.from = rate, .to = rate, .seconds = seconds});
  return profile;
}

double expected_calls(const RateProfile& profile, double seconds) {
  double calls = 0;
  for (std::size_t i = 0; i < profile.size() && seconds > 0; ++i) {
    const bool is_last = i + 1 == profile.size();
    const double here = is_last ? seconds : std::min(seconds, profile[i].seconds);
    calls += calls_of(profile[i], here);
    seconds -= here;
  }
  return calls;
}

Schedule::Schedule(RateProfile profile, Arrivals arrivals, std::uint64_t seed, ScheduleShare share)
    : profile_(std::move(profile)),
      arrivals_(arrivals),
      dice_(seed),
      share_(share),
      others_(share.index) {}

std::chrono::nanoseconds Schedule::next() {
  for (; others_ > 0; --others_)
    draw();
  others_ = share_.count - 1;
  return draw();
}

// When the schedule's next call is due, whichever process makes that call.
std::chrono::nanoseconds Schedule::draw() {
  left_ += arrivals_ == Arrivals::kEven ? 1 : std::exponential_distribution<double>(1)(dice_);
  for (;;) {
    const RatePart& part = profile_[part_];
    const bool is_last = part_ + 1 == profile_.size();
    const double whole =
        is_last ? std::numeric_limits<double>::infinity() : calls_of(part, part.seconds);
    if (left_ < whole) {
      const std::chrono::duration<double> offset(part_began_ + seconds_of(part, left_));
      // A rate of nearly 0: the call is due long after every run.
      if (offset >= std::chrono::nanoseconds::max()) return std::chrono::nanoseconds::max();
      return std::chrono::duration_cast<std::chrono::nanoseconds>(offset);
    }
    left_ -= whole;
    part_began_ += part.seconds;
    ++part_;
  }
}

}  // namespace signalbox::tools
