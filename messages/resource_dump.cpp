// SPDX-License-Identifier: Apache-2.0
#include "messages/resource_dump.hpp"

namespace signalbox {

absl::string_view to_string(ResourceStatus status) {
  switch (status) {
    case ResourceStatus::kRequested:
      return "REQUESTED";
    case ResourceStatus::kDoesNotExist:
      return "DOES_NOT_EXIST";
    case ResourceStatus::kAcked:
      return "ACKED";
    case ResourceStatus::kNacked:
      return "NACKED";
    case ResourceStatus::kReceivedError:
      return "RECEIVED_ERROR";
    case ResourceStatus::kTimeout:
      return "TIMEOUT";
  }
  return "unknown";
}

absl::string_view cache_state(const ResourceState& state) {
  const bool cached = state.updated.has_value();
  switch (state.status) {
    case ResourceStatus::kRequested:
      return "requested";
    case ResourceStatus::kDoesNotExist:
      return cached ? "does_not_exist_but_cached" : "does_not_exist";
    case ResourceStatus::kAcked:
      return "acked";
    case ResourceStatus::kNacked:
      return cached ? "nacked_but_cached" : "nacked";
    case ResourceStatus::kReceivedError:
      return cached ? "received_error_but_cached" : "received_error";
    case ResourceStatus::kTimeout:
      return "timeout";
  }
  return "unknown";
}

}  // namespace signalbox
