// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "absl/strings/str_cat.h"

#include "tools/commands.hpp"

namespace signalbox::tools {

void say(absl::string_view command, absl::string_view text) {
  std::cerr << absl::StrCat("signalbox ", command, ": ", text, "\n") << std::flush;
}

}  // namespace signalbox::tools
