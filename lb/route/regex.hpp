// SPDX-License-Identifier: Apache-2.0
//
// compile_regex — the regular expressions of routes, which the parser has allowed already.
//
//   pattern, within the user's max_regex_memory ─▶ [compile_regex] ─▶ RE2

#pragma once

#include <memory>
#include <string>

#include "re2/re2.h"

namespace signalbox::lb {

/// With as much memory as the pattern needs, up to 64 MiB. Never null; check ok().
std::unique_ptr<const re2::RE2> compile_regex(const std::string& pattern);

}  // namespace signalbox::lb
