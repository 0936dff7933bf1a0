// SPDX-License-Identifier: Apache-2.0
#include "lb/route/regex.hpp"

#include <cstdint>

namespace signalbox::lb {
namespace {

// What one regular expression may cost: as a rule, and where the user's limit allows more.
constexpr std::int64_t kRegexMemory = 1 << 20;
constexpr std::int64_t kMostRegexMemory = 64 << 20;

}  // namespace

// The parser has compiled it within the user's max_regex_memory, which is not known here: a pattern
// that needs more than the rule was allowed more.
std::unique_ptr<const re2::RE2> compile_regex(const std::string& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  for (std::int64_t memory = kRegexMemory;; memory *= 2) {
    options.set_max_mem(memory);
    auto regex = std::make_unique<const re2::RE2>(pattern, options);
    const bool too_large = regex->error_code() == re2::RE2::ErrorPatternTooLarge;
    if (!too_large || memory >= kMostRegexMemory) return regex;
  }
}

}  // namespace signalbox::lb
