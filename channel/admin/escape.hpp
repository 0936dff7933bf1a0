// SPDX-License-Identifier: Apache-2.0
//
// escape — makes any text safe to show in an HTML page. Pure.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::channel {

/// The result may stand in an element or in an attribute in double quotes. ASCII control
/// characters, except the newline, become U+FFFD.
std::string escape(absl::string_view text);

}  // namespace signalbox::channel
