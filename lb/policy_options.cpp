// SPDX-License-Identifier: Apache-2.0
#include "lb/policy_options.hpp"

#include "absl/strings/string_view.h"

namespace signalbox::lb {

// Any other value leaves a variable's default.
PolicyOptions policy_options_from(absl::FunctionRef<const char*(const char* name)> get) {
  PolicyOptions options;
  const char* const value = get("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING");
  options.weighted_shuffling = value == nullptr || absl::string_view(value) != "false";
  return options;
}

}  // namespace signalbox::lb
