// SPDX-License-Identifier: Apache-2.0
//
// check_options — checks the options of a runtime before anything is started.
//
//   RuntimeOptions ─▶ [check_options] ─▶ Runtime::start
//
// Bootstraps, key files, and names of policies and filters are checked where they are read, because
// that needs more than the options.

#pragma once

#include <string>

#include "absl/status/status.h"

#include "signalbox/runtime.hpp"

namespace signalbox::channel {

/// Checks all options. INVALID_ARGUMENT names the first invalid one, the rule, and the value that
/// was found.
absl::Status check_options(const RuntimeOptions& options);

/// Checks a default authority. INVALID_ARGUMENT if it is no valid value of the header :authority.
absl::Status check_authority(const std::string& authority);

}  // namespace signalbox::channel
