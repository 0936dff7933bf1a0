// SPDX-License-Identifier: Apache-2.0
//
// escape — any text as text of an HTML page. Pure.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::channel {

/// For text and for attributes in double quotes. Control characters but the newline become U+FFFD.
std::string escape(absl::string_view text);

}  // namespace signalbox::channel
