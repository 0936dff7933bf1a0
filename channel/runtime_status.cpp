// SPDX-License-Identifier: Apache-2.0
#include "signalbox/runtime_status.hpp"

namespace signalbox {

absl::string_view to_string(PriorityChangeReason reason) {
  switch (reason) {
    case PriorityChangeReason::kFirst:
      return "first";
    case PriorityChangeReason::kFailed:
      return "failed";
    case PriorityChangeReason::kTimedOut:
      return "timed out";
    case PriorityChangeReason::kRecovered:
      return "recovered";
    case PriorityChangeReason::kReconfigured:
      return "reconfigured";
    case PriorityChangeReason::kLost:
      return "lost";
  }
  return "unknown";
}

}  // namespace signalbox
