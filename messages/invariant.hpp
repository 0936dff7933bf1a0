// SPDX-License-Identifier: Apache-2.0
//
// SIGNALBOX_INVARIANT — for what cannot happen. A broken invariant throws the codebase's only
// exception; the shell turns it into that actor's exit, which is counted, logged and supervised.
// Always on, except that the pick path does not use it.

#pragma once

#include <stdexcept>
#include <string>

namespace signalbox {

/// The program is wrong. Never thrown for bad input.
class BrokenInvariant : public std::logic_error {
 public:
  explicit BrokenInvariant(const std::string& sentence) : std::logic_error(sentence) {}
};

}  // namespace signalbox

#define SIGNALBOX_INVARIANT(condition, sentence)                                 \
  do {                                                                           \
    if (!(condition)) throw ::signalbox::BrokenInvariant(std::string(sentence)); \
  } while (false)
