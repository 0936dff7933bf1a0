// SPDX-License-Identifier: Apache-2.0
//
// check_options — what is wrong with the options of a runtime, before anything is started.
//
//   RuntimeOptions ─▶ [check_options] ─▶ Runtime::start
//
// What needs more than the options is checked where it is read: bootstraps, key files, names of
// policies and filters.

#pragma once

#include <string>

#include "absl/status/status.h"

#include "signalbox/runtime.hpp"

namespace signalbox::channel {

/// INVALID_ARGUMENT: the first option that is wrong, what it must be, and what was found.
absl::Status check_options(const RuntimeOptions& options);

/// INVALID_ARGUMENT for a default authority that no request may carry.
absl::Status check_authority(const std::string& authority);

}  // namespace signalbox::channel
