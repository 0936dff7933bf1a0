// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/caller_stats.hpp"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace signalbox {
namespace {

absl::string_view word_of(DelayReason reason) {
  switch (reason) {
    case DelayReason::kResolving:
      return "resolving";
    case DelayReason::kConnecting:
      return "connecting";
    case DelayReason::kStalePick:
      return "subchannel_state_mismatch";
    case DelayReason::kFailing:
      return "picker_failing_with_wait_for_ready";
    case DelayReason::kFilterDelay:
      return "filter_delay";
    case DelayReason::kStreams:
      return "max_concurrent_streams";
  }
  return "?";
}

}  // namespace

std::string to_string(const DelayType& type) {
  const absl::string_view word = word_of(type.reason);
  return type.priority ? absl::StrCat("p", *type.priority, ":", word) : std::string(word);
}

}  // namespace signalbox
