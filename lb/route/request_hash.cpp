// SPDX-License-Identifier: Apache-2.0
#include "lb/route/request_hash.hpp"

#include <bit>
#include <utility>
#include <variant>

#include "lb/header_value.hpp"
#include "lb/route/regex.hpp"
#include "lb/xx_hash.hpp"

namespace signalbox::lb {

RequestHash::RequestHash(const std::vector<HashPolicy>& policies,
                         std::uint64_t channel_id,
                         RegexPool* pool)
    : channel_hash_(draw(channel_id, Salt::kRequestHash)) {
  steps_.reserve(policies.size());
  for (const HashPolicy& policy : policies) {
    Step step;
    step.terminal = policy.terminal;
    if (const auto* header = std::get_if<HeaderHash>(&policy.what)) {
      step.header = header->header;
      if (header->rewrite.has_value()) {
        const std::string& pattern = header->rewrite->pattern;
        step.pattern = pool == nullptr ? compile_regex(pattern) : pool->get(pattern);
        step.substitution = header->rewrite->substitution;
      }
    }
    steps_.push_back(std::move(step));
  }
}

std::optional<std::uint64_t> RequestHash::of(const HeaderSource* headers) const {
  std::optional<std::uint64_t> hash;
  for (const Step& step : steps_) {
    if (const auto one = hash_of(step, headers)) hash = std::rotl(hash.value_or(0), 1) ^ *one;
    if (step.terminal && hash.has_value()) break;
  }
  return hash;
}

std::optional<std::uint64_t> RequestHash::hash_of(const Step& step,
                                                  const HeaderSource* headers) const {
  if (step.header.empty()) return channel_hash_;
  const HeaderValue value(headers, step.header);
  if (!value.get().has_value()) return std::nullopt;
  if (step.pattern == nullptr) return xx_hash(*value.get());
  std::string rewritten(*value.get());
  re2::RE2::GlobalReplace(&rewritten, *step.pattern, step.substitution);
  return xx_hash(rewritten);
}

}  // namespace signalbox::lb
