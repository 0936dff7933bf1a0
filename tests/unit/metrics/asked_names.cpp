// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/metrics/asked_names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace signalbox::test {
namespace {

bool is_of_word(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == ':';
}

// Removes the first token from `rest`: a word, a text in double quotes, or one other character. The
// token is empty at the end of `rest`.
absl::string_view take_token(absl::string_view& rest) {
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (rest.empty()) return rest;
  std::size_t size = 1;
  if (rest.front() == '"') {
    while (size < rest.size() && rest[size] != '"')
      size += rest[size] == '\\' ? 2 : 1;
    ++size;  // The closing quote.
  } else if (is_of_word(rest.front())) {
    while (size < rest.size() && is_of_word(rest[size]))
      ++size;
  }
  const absl::string_view token = rest.substr(0, size);
  rest.remove_prefix(token.size());
  return token;
}

// Removes the tokens up to and including `end`, and returns the words among them.
std::set<std::string> take_words_until(char end, absl::string_view& rest) {
  std::set<std::string> words;
  for (auto token = take_token(rest); !token.empty() && token.front() != end;
       token = take_token(rest)) {
    if (is_of_word(token.front())) words.emplace(token);
  }
  return words;
}

bool take_if(char wanted, absl::string_view& rest) {
  rest = absl::StripLeadingAsciiWhitespace(rest);
  return absl::ConsumePrefix(&rest, absl::string_view(&wanted, 1));
}

bool begins_a_grouping(absl::string_view word) {
  constexpr std::array<absl::string_view, 6> kWords{
      "by", "without", "on", "ignoring", "group_left", "group_right"};
  return std::ranges::find(kWords, word) != kWords.end();
}

}  // namespace

AskedNames asked_names(absl::string_view expression) {
  AskedNames asked;
  for (auto token = take_token(expression); !token.empty(); token = take_token(expression)) {
    if (!is_of_word(token.front())) continue;
    if (begins_a_grouping(token)) {
      if (take_if('(', expression)) asked.groupings.merge(take_words_until(')', expression));
      continue;
    }
    const bool is_selected = take_if('{', expression);
    if (!is_selected && !absl::StartsWith(token, "signalbox_") && !absl::StrContains(token, ':'))
      continue;
    AskedSeries series{std::string(token), {}};
    if (is_selected) series.labels = take_words_until('}', expression);
    asked.series.push_back(std::move(series));
  }
  return asked;
}

}  // namespace signalbox::test
