// SPDX-License-Identifier: Apache-2.0
#include "channel/policy_options.hpp"

#include "absl/strings/string_view.h"

namespace signalbox::channel {

lb::PolicyOptions policy_options(const RuntimeOptions& options,
                                 const std::function<const char*(const char*)>& get) {
  const char* keep = get("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE");
  lb::PolicyOptions result;
  result.failover_timeout = options.failover_timeout;
  result.keep_removed_priorities = keep != nullptr && absl::string_view(keep) == "true";
  return result;
}

}  // namespace signalbox::channel
