// SPDX-License-Identifier: Apache-2.0
//
// PickWait — how long one call waits for an endpoint, and why (gRFC A121).
//
//   queued_call, pick_until, pick_async ─▶ goes_on(type) … goes_on(other type) … ended()
//                                                              └─ record_wait() ─▶ CallerStats
//
// A wait has a part for each DelayType: a call that first waits for a configuration, then for a
// connection is recorded twice. A call that does not wait is not timed.

#pragma once

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "lb/pick/router.hpp"
#include "messages/counting/caller_stats.hpp"
#include "messages/ids.hpp"

namespace signalbox::channel {

/// Why a call with this pick waits.
inline DelayType delay_type(const lb::Pick& pick) {
  if (pick.delay() > Duration::zero()) return {DelayReason::kFilterDelay};
  if (pick.is_put_off()) return {DelayReason::kStalePick};
  if (pick.outcome() == PickOutcome::kFail && pick.cluster() != nullptr)
    return {DelayReason::kFailing, pick.priority()};
  if (pick.outcome() == PickOutcome::kComplete) return {DelayReason::kStreams};
  if (pick.cluster() == nullptr) return {DelayReason::kResolving};
  return {DelayReason::kConnecting, pick.priority()};
}

/// Why the call waits, as a text for people. `awaited`: the resource or name for which a call
/// without a configuration waits.
inline std::string delay_reason(const lb::Pick& pick, DelayType type, absl::string_view awaited) {
  const absl::string_view error = pick.status().message();
  const std::string last = error.empty() ? "" : absl::StrCat("; last error: ", error);
  switch (type.reason) {
    case DelayReason::kResolving:
      return absl::StrCat("waiting for ", awaited, last);
    case DelayReason::kConnecting:
      return absl::StrCat("cluster ", pick.cluster()->name().str(), ": no connection yet", last);
    case DelayReason::kStalePick:
      return "the picked connection ended before the call was sent";
    case DelayReason::kFailing:
      return std::string(error);
    case DelayReason::kFilterDelay:
      return "a filter delays the call";
    case DelayReason::kStreams:
      return absl::StrCat("endpoint ",
                          pick.connection()->address().str(),
                          ": all streams of its connections are in use");
  }
  return "";
}

class PickWait {
 public:
  /// At `now`, the call waits for the reason `type`. If it waited for another reason before, that
  /// part of the wait ends and is recorded.
  void goes_on(DelayType type, Instant now, const CallerStats* stats) {
    if (part_ && part_->type == type) return;
    ended(now, stats);
    part_ = Part{type, now};
  }

  /// The call waits no longer: records the last part. Does nothing for a call that has not waited.
  /// With null `stats`, nothing is recorded.
  void ended(Instant now, const CallerStats* stats) {
    if (part_ && stats != nullptr) stats->record_wait(part_->type, now - part_->since);
    part_.reset();
  }

 private:
  struct Part {
    DelayType type;
    Instant since{};
  };

  std::optional<Part> part_;
};

}  // namespace signalbox::channel
