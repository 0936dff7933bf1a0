// SPDX-License-Identifier: Apache-2.0
//
// check_options — checks the options of a runtime before anything is started.
//
//   RuntimeOptions ─▶ [check_options, bounded] ─▶ Runtime::start
//
// The content of the bootstrap, session_cookies, and the custom policies and filters are checked
// elsewhere, by the parts that read them.

#pragma once

#include <string>

#include "absl/status/status.h"

#include "signalbox/runtime.hpp"

namespace signalbox::channel {

/// Checks the options that can be invalid, except those that are checked elsewhere (see the top of
/// this file). INVALID_ARGUMENT names one of the invalid options and its fault.
absl::Status check_options(const RuntimeOptions& options);

/// The valid options, with durations above a century lowered to it. A program may set the longest
/// duration to say "never", and sums with a time must not overflow.
RuntimeOptions bounded(RuntimeOptions options);

/// Checks a default authority. INVALID_ARGUMENT if it is no valid value of the header :authority.
absl::Status check_authority(const std::string& authority);

}  // namespace signalbox::channel
