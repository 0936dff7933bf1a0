// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/regex_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include <re2/re2.h>

#include "messages/overloaded.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {
namespace {

// Measured memory of RE2, in bytes: per pattern, and per instruction of its program.
constexpr std::size_t kBytesPerRegex = 4096;
constexpr std::size_t kBytesPerInstruction = 18;

using Visit = absl::FunctionRef<void(const std::string&)>;

void each_regex(const TextMatcher& matcher, Visit see) {
  if (matcher.kind == TextMatcher::Kind::kRegex) see(matcher.text);
}

void each_regex(const Route& route, Visit see) {
  each_regex(route.match.path, see);
  for (const HeaderMatcher& header : route.match.headers) {
    if (const auto* text = std::get_if<TextMatcher>(&header.matcher)) each_regex(*text, see);
  }
  const auto* forward = std::get_if<ForwardAction>(&route.action);
  if (forward == nullptr) return;
  for (const HashPolicy& policy : forward->hash_policies) {
    const auto* header = std::get_if<HeaderHash>(&policy.what);
    if (header != nullptr && header->rewrite) see(header->rewrite->pattern);
  }
}

void each_regex(const RouteConfig& config, Visit see) {
  for (const VirtualHost& host : config.virtual_hosts) {
    for (const Route& route : host.routes)
      each_regex(route, see);
  }
}

void each_regex(const Resource& resource, Visit see) {
  std::visit(
      Overloaded{
          [&](const std::shared_ptr<const Listener>& listener) {
            const auto* routes = std::get_if<std::shared_ptr<const RouteConfig>>(&listener->routes);
            if (routes != nullptr) each_regex(**routes, see);
          },
          [&](const std::shared_ptr<const RouteConfig>& config) { each_regex(*config, see); },
          [&](const std::shared_ptr<const Cluster>& cluster) {
            if (!cluster->tls) return;
            for (const TextMatcher& name : cluster->tls->subject_alt_names)
              each_regex(name, see);
          },
          [](const EndpointsPtr&) {},
      },
      resource);
}

RegexVerdict beyond(absl::string_view limit, std::string what) {
  return {limit, std::move(what)};
}

}  // namespace

RegexVerdict RegexBudget::judge(const std::string& pattern) {
  if (valid_.contains(pattern)) return {};
  const auto refused = refused_.find(pattern);
  if (refused != refused_.end()) return refused->second;
  RegexVerdict verdict = judge_sum(pattern);
  if (!verdict.what.empty()) return verdict;
  RegexFacts facts{.cost = kBytesPerRegex};
  const auto known = known_.find(pattern);
  if (known != known_.end())
    facts = known->second;
  else
    verdict = judge_alone(pattern, facts);
  count(pattern, facts);  // Patterns that are refused count too.
  if (!verdict.what.empty()) return refused_.emplace(pattern, std::move(verdict)).first->second;
  valid_.emplace(pattern, facts);
  return {};
}

// To check a substitution, RE2 needs a compiled pattern, and uses only its number of groups. So a
// pattern of as many empty groups is compiled here, instead of `pattern` once more.
std::string RegexBudget::judge_substitution(const std::string& pattern,
                                            const std::string& substitution) const {
  constexpr int kMostGroups = 9;  // A substitution refers to a group by one digit.
  std::string groups;
  for (int i = 0; i < std::min(valid_.at(pattern).groups, kMostGroups); ++i)
    groups += "()";
  std::string error;
  return RE2(groups, RE2::Quiet).CheckRewriteString(substitution, &error) ? "" : error;
}

bool RegexBudget::add_parsed(const Resource& resource) {
  bool has_room = true;
  each_regex(resource, [&](const std::string& pattern) {
    if (!has_room || valid_.contains(pattern)) return;
    has_room = judge_sum(pattern).what.empty();
    if (!has_room) return;
    const auto known = known_.find(pattern);
    const RegexFacts facts = known == known_.end() ? RegexFacts{kBytesPerRegex} : known->second;
    count(pattern, facts);
    valid_.emplace(pattern, facts);
  });
  return has_room;
}

void RegexBudget::count(const std::string& pattern, const RegexFacts& facts) {
  ++count_;
  length_ += std::min(pattern.size(), limits_.max_regex_length);
  memory_ += facts.cost;
}

RegexVerdict RegexBudget::judge_alone(const std::string& pattern, RegexFacts& facts) const {
  if (pattern.size() > limits_.max_regex_length) {
    return beyond("max_regex_length",
                  absl::StrCat("must not be longer than ",
                               limits_.max_regex_length,
                               " bytes, found ",
                               pattern.size()));
  }
  const std::size_t memory = std::min(limits_.max_regex_memory, kMostRegexMemory);
  RE2::Options options;
  options.set_max_mem(static_cast<std::int64_t>(memory));
  options.set_log_errors(false);
  const RE2 compiled(pattern, options);
  if (compiled.error_code() == RE2::ErrorPatternTooLarge) {
    facts.cost += memory;  // RE2 used up to that much memory before it refused.
    return beyond("max_regex_memory",
                  absl::StrCat("must compile into ", memory, " bytes, found ", in_quotes(pattern)));
  }
  if (!compiled.ok()) {
    return {
        "",
        absl::StrCat("must be an RE2 pattern, found ", in_quotes(pattern), ": ", compiled.error())};
  }
  facts.cost += static_cast<std::size_t>(compiled.ProgramSize()) * kBytesPerInstruction;
  facts.groups = compiled.NumberOfCapturingGroups();
  return {};
}

// Returns the error if the budget has no room for one more pattern. A pattern's memory is known
// only after it is compiled, so the sum may exceed its limit by one pattern.
RegexVerdict RegexBudget::judge_sum(const std::string& pattern) const {
  if (count_ >= limits_.max_regexes) {
    return beyond("max_regexes",
                  absl::StrCat("a response must have at most ",
                               limits_.max_regexes,
                               " different patterns, found ",
                               in_quotes(pattern),
                               " beyond them"));
  }
  if (length_ + std::min(pattern.size(), limits_.max_regex_length) > limits_.max_regexes_length) {
    return beyond("max_regexes_length",
                  absl::StrCat("the patterns of a response must have at most ",
                               limits_.max_regexes_length,
                               " bytes together, found ",
                               in_quotes(pattern),
                               " beyond them"));
  }
  if (memory_ > limits_.max_regexes_memory) {
    return beyond("max_regexes_memory",
                  absl::StrCat("the patterns of a response must compile into ",
                               limits_.max_regexes_memory,
                               " bytes together, found ",
                               in_quotes(pattern),
                               " beyond them"));
  }
  return {};
}

}  // namespace signalbox::xds
