// SPDX-License-Identifier: Apache-2.0
#include "channel/policy_options.hpp"

#include <algorithm>

#include "absl/strings/string_view.h"

#include "actors/io/large_pages.hpp"
#include "lb/leaf/picker_pace.hpp"

namespace signalbox::channel {

lb::PolicyOptions policy_options(const RuntimeOptions& options,
                                 const std::function<const char*(const char*)>& get) {
  const auto is = [&](const char* name, absl::string_view value) {
    const char* const found = get(name);
    return found != nullptr && found == value;
  };
  lb::PolicyOptions result;
  result.session_memory = &actors::large_pages();
  result.failover_timeout = options.failover_timeout;
  result.standby_priorities = options.standby_priorities;
  result.connection_attempt_delay = options.connection_attempt_delay;
  result.picker_interval = lb::kPickerInterval;
  result.ring_size_cap = std::max<std::uint64_t>(options.ring_size_cap, 1);
  result.aggregate_mode = options.aggregate_mode;
  result.panic_threshold = options.panic_threshold;
  result.load_streams = options.transport == EndpointTransport::kGrpc;
  result.unreachable_is_unhealthy = options.unreachable_is_unhealthy;
  result.keep_removed_priorities =
      is("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE", "true");
  result.weighted_shuffling = !is("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING", "false");
  return result;
}

}  // namespace signalbox::channel
