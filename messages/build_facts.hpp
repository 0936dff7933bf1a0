// SPDX-License-Identifier: Apache-2.0
//
// build_facts — what was built. One small source has the facts, so that a new revision compiles
// nothing else again.

#pragma once

#include "absl/strings/string_view.h"

namespace signalbox {

/// The version of the project, such as "0.1.0".
absl::string_view build_version();

/// The short name of the commit that was built; "unknown" if git could not tell.
absl::string_view build_revision();

/// CMake's build type, such as "Release".
absl::string_view build_type();

}  // namespace signalbox
