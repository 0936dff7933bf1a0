// SPDX-License-Identifier: Apache-2.0
//
// SIGNALBOX_INVARIANT — checks a condition that a correct program always meets. A broken invariant
// throws BrokenInvariant, the only exception that signalbox's cores throw by themselves. An actor
// ends when its core throws. Its death is counted, and its parent restarts it. The check is always
// on; pick() does not use it.

#pragma once

#include <stdexcept>
#include <string>

namespace signalbox {

/// Thrown when the program is wrong, never for bad input.
class BrokenInvariant : public std::logic_error {
 public:
  explicit BrokenInvariant(const std::string& sentence) : std::logic_error(sentence) {}
};

}  // namespace signalbox

#define SIGNALBOX_INVARIANT(condition, sentence)                                 \
  do {                                                                           \
    if (!(condition)) throw ::signalbox::BrokenInvariant(std::string(sentence)); \
  } while (false)
