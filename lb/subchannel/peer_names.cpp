// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/peer_names.hpp"

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace signalbox::lb {
namespace {

using Kind = TextMatcher::Kind;

constexpr std::size_t kMostNames = 8;
constexpr std::size_t kLongestName = 128;

absl::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kExact:
      return "exact";
    case Kind::kPrefix:
      return "prefix";
    case Kind::kSuffix:
      return "suffix";
    case Kind::kContains:
      return "contains";
    case Kind::kRegex:
      break;
  }
  return "safe_regex";
}

// The name in quotes, for an error. The peer chooses the names in its certificate, so the name is
// cut to a readable length, and its non-printable characters are escaped.
std::string in_quotes(absl::string_view name) {
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, kLongestName)), "\"");
}

std::string list(std::vector<std::string> texts) {
  const std::size_t more = texts.size() - std::min(texts.size(), kMostNames);
  texts.resize(texts.size() - more);
  const std::string listed = absl::StrJoin(texts, ", ");
  return more == 0 ? listed : absl::StrCat(listed, " and ", more, " more");
}

std::string list(const PeerNames& names) {
  std::vector<std::string> texts;
  for (const auto* kind : {&names.dns, &names.others}) {
    for (const std::string& name : *kind)
      texts.push_back(in_quotes(name));
  }
  return texts.empty() ? "no name" : list(std::move(texts));
}

}  // namespace

bool matches_dns_name(absl::string_view pattern, absl::string_view name) {
  absl::ConsumeSuffix(&pattern, ".");
  absl::ConsumeSuffix(&name, ".");
  if (pattern.empty() || name.empty() || pattern.front() == '.' || name.front() == '.')
    return false;
  if (!absl::StrContains(pattern, "*")) return absl::EqualsIgnoreCase(pattern, name);
  // A wildcard must be the whole first label, and stands for exactly one label.
  if (!absl::ConsumePrefix(&pattern, "*") || pattern.empty() || pattern.front() != '.' ||
      absl::StrContains(pattern, "*")) {
    return false;
  }
  return absl::EqualsIgnoreCase(pattern, name.substr(std::min(name.find('.'), name.size())));
}

PeerNameCheck::PeerNameCheck(const std::vector<TextMatcher>& allowed) {
  rules_.reserve(allowed.size());
  for (const TextMatcher& matcher : allowed)
    rules_.push_back({matcher, CompiledText(matcher)});
}

absl::Status PeerNameCheck::check(const PeerNames& names) const {
  if (rules_.empty()) return absl::OkStatus();
  for (const Rule& rule : rules_) {
    const auto matches = [&](const std::string& name) { return rule.text.matches(name); };
    const auto matches_dns = [&](const std::string& name) {
      return rule.matcher.kind == Kind::kExact ? matches_dns_name(name, rule.matcher.text)
                                               : matches(name);
    };
    if (std::ranges::any_of(names.dns, matches_dns) || std::ranges::any_of(names.others, matches))
      return absl::OkStatus();
  }
  std::vector<std::string> wanted;
  wanted.reserve(rules_.size());
  for (const Rule& rule : rules_)
    wanted.push_back(absl::StrCat(kind_name(rule.matcher.kind), " ", in_quotes(rule.matcher.text)));
  return absl::UnauthenticatedError(absl::StrCat("the server's certificate has ",
                                                 list(names),
                                                 ", and match_subject_alt_names asks for ",
                                                 list(std::move(wanted))));
}

}  // namespace signalbox::lb
