// SPDX-License-Identifier: Apache-2.0
#include "lb/route/regex.hpp"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace signalbox::lb {
namespace {

// RE2's memory for one regular expression, in bytes: usual, least and most.
constexpr std::int64_t kRegexMemory = 1 << 20;
constexpr std::int64_t kLeastRegexMemory = 64 << 10;
constexpr std::int64_t kMostRegexMemory = 64 << 20;

re2::RE2::Options options_with(std::int64_t memory) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(memory);
  return options;
}

// Compiles the pattern, and doubles the memory until it suffices or is kMostRegexMemory. The parser
// has accepted the pattern within the program's max_regex_memory, which is not known here and may
// be more than `memory`.
RegexPtr compile_from(const std::string& pattern, std::int64_t memory) {
  for (;; memory *= 2) {
    auto regex = std::make_shared<const re2::RE2>(pattern, options_with(memory));
    const bool too_large = regex->error_code() == re2::RE2::ErrorPatternTooLarge;
    if (!too_large || memory >= kMostRegexMemory) return regex;
  }
}

std::int64_t set_memory(std::size_t patterns, double share) {
  const auto most = static_cast<std::int64_t>(static_cast<double>(kMostRegexMemory) / share);
  const auto wanted = static_cast<std::int64_t>(patterns) * kRegexMemory;
  return std::min(wanted, std::max(most, kRegexMemory));
}

}  // namespace

RegexPtr compile_regex(const std::string& pattern) {
  return compile_from(pattern, kRegexMemory);
}

RegexPool::RegexPool(std::size_t patterns)
    : memory_(std::clamp(
          kMostRegexMemory / static_cast<std::int64_t>(std::max<std::size_t>(patterns, 1)),
          kLeastRegexMemory,
          kRegexMemory)) {}

RegexPtr RegexPool::get(const std::string& pattern) {
  RegexPtr& regex = compiled_[pattern];
  if (regex == nullptr) regex = compile_from(pattern, memory_);
  return regex;
}

// Takes ASCII characters that stand for themselves, and escaped signs, up to the first other part.
// If that part repeats the last character or makes it optional ('*', '?', '{', '+'), the character
// is dropped.
std::string literal_prefix(absl::string_view pattern) {
  std::string prefix;
  if (absl::StrContains(pattern, '|')) return prefix;
  std::size_t at = absl::StartsWith(pattern, "^") ? 1 : 0;
  for (; at < pattern.size(); ++at) {
    const bool is_escape = pattern[at] == '\\' && at + 1 < pattern.size();
    const char letter = is_escape ? pattern[at + 1] : pattern[at];
    if (!absl::ascii_isascii(static_cast<unsigned char>(letter))) break;
    const bool is_sign = absl::StrContains("\\.+*?()[]{}^$", letter);
    if (is_escape ? !absl::ascii_ispunct(static_cast<unsigned char>(letter)) : is_sign) break;
    prefix += letter;
    at += is_escape ? 1 : 0;
  }
  const bool may_vary = at < pattern.size() && absl::StrContains("*?{+", pattern[at]);
  if (may_vary && !prefix.empty()) prefix.pop_back();
  return prefix;
}

RegexSet::RegexSet(const std::vector<std::string>& patterns, double share)
    : set_(options_with(set_memory(patterns.size(), share)), re2::RE2::ANCHOR_BOTH) {
  for (const std::string& pattern : patterns)
    set_.Add(pattern, nullptr);
  fits_ = set_.Compile();
}

std::optional<absl::Span<const int>> RegexSet::match(absl::string_view text) const {
  thread_local std::vector<int> matched;
  if (!fits_) return std::nullopt;
  re2::RE2::Set::ErrorInfo error{re2::RE2::Set::kNoError};
  const bool is_any = set_.Match(re2::StringPiece(text.data(), text.size()), &matched, &error);
  if (!is_any && error.kind != re2::RE2::Set::kNoError) return std::nullopt;
  std::ranges::sort(matched);
  return matched;
}

}  // namespace signalbox::lb
