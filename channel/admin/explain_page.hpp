// SPDX-License-Identifier: Apache-2.0
//
// explain_page — parses the query of GET /explain, which describes one call that is to be
// explained.
//
//   ?target=xds:///orders&method=/shop.Orders/Place&header=x-user:7&cookie=s=…&seed=42
//      ─▶ [parse_explain_query] ─▶ ExplainQuestion ─▶ Runtime ─▶ Explanation
//                                                                    └▶ xds/explanation_json

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "messages/pick.hpp"

namespace signalbox::channel {

/// A hypothetical call.
struct ExplainQuestion {
  std::string target;  ///< As channels and routers of the runtime name it.
  std::string method;  ///< "/package.Service/Method".
  std::vector<std::pair<std::string, std::string>> headers;  ///< Names in lower case.
  std::optional<std::uint64_t> seed;  ///< Decides the call's random choices; nullopt: any seed.
};

/// Parses "name:value" as a header, without the spaces around the value. INVALID_ARGUMENT says what
/// is wrong.
absl::StatusOr<std::pair<std::string, std::string>> parse_header(const std::string& text);

/// Returns the call that the query describes. INVALID_ARGUMENT says what is wrong, and what would
/// be right.
absl::StatusOr<ExplainQuestion> parse_explain_query(
    const std::multimap<std::string, std::string>& query);

/// The headers of an ExplainQuestion in the form in which routes read the headers of a call.
class QuestionHeaders final : public HeaderSource {
 public:
  explicit QuestionHeaders(const ExplainQuestion& question) : question_(question) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override;

 private:
  const ExplainQuestion& question_;
};

}  // namespace signalbox::channel
