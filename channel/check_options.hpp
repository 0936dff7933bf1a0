// SPDX-License-Identifier: Apache-2.0
//
// check_options — checks the options of a runtime before anything is started.
//
//   RuntimeOptions ─▶ [check_options] ─▶ Runtime::start
//
// Bootstraps, key files, and names of custom policies and filters are checked elsewhere, by the
// parts that read them: those checks need files, or the list of known names.

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
