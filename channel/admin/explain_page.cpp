// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/explain_page.hpp"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/header_rules.hpp"

namespace signalbox::channel {
namespace {

constexpr const char* kKeys = "target, method, header, cookie, seed";

absl::Status wrong(absl::string_view key, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": expected ", expected, ", got '", found, "'"));
}

// Stores one parameter of the query in the question. An error says what is wrong with the
// parameter.
absl::Status take(ExplainQuestion& question, const std::string& key, const std::string& value) {
  const bool is_again = (key == "target" && !question.target.empty()) ||
                        (key == "method" && !question.method.empty()) ||
                        (key == "seed" && question.seed);
  if (is_again) return absl::InvalidArgumentError(absl::StrCat(key, ": expected it once"));
  if (key == "target") {
    question.target = value;
  } else if (key == "method") {
    if (!absl::StartsWith(value, "/")) return wrong(key, "/package.Service/Method", value);
    question.method = value;
  } else if (key == "header") {
    auto header = parse_header(value);
    if (!header.ok()) return header.status();
    question.headers.push_back(*std::move(header));
  } else if (key == "cookie") {
    const auto equals = value.find('=');
    const bool has_name = equals != std::string::npos && equals > 0;
    if (!has_name || !is_header_value("cookie", value))
      return absl::InvalidArgumentError("cookie: expected name=value in printable ASCII");
    question.headers.emplace_back("cookie", value);
  } else if (key == "seed") {
    std::uint64_t seed = 0;
    if (!absl::SimpleAtoi(value, &seed)) return wrong(key, "a whole number of 0 or more", value);
    question.seed = seed;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("'", key, "': expected one of ", kKeys));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::pair<std::string, std::string>> parse_header(const std::string& text) {
  const auto colon = text.find(':');
  const std::string name = absl::AsciiStrToLower(text.substr(0, colon));
  if (colon == std::string::npos || !is_header_name(name))
    return absl::InvalidArgumentError("header: expected name:value, and a name as gRPC takes it");
  const std::string value(absl::StripAsciiWhitespace(text.substr(colon + 1)));
  if (!is_header_value(name, value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("header ", name, ": expected a value in printable ASCII"));
  }
  return std::pair{name, value};
}

absl::StatusOr<ExplainQuestion> parse_explain_query(
    const std::multimap<std::string, std::string>& query) {
  ExplainQuestion question;
  for (const auto& [key, value] : query) {
    const absl::Status taken = take(question, key, value);
    if (!taken.ok()) return taken;
  }
  for (const auto& [key, value] :
       {std::pair{"target", &question.target}, std::pair{"method", &question.method}}) {
    if (value->empty())
      return absl::InvalidArgumentError(absl::StrCat(key, " is missing; there are: ", kKeys));
  }
  return question;
}

void QuestionHeaders::each(absl::string_view name,
                           absl::FunctionRef<void(absl::string_view value)> visit) const {
  for (const auto& [key, value] : question_.headers) {
    if (key == name) visit(value);
  }
}

}  // namespace signalbox::channel
