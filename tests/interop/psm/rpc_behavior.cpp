// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/psm/rpc_behavior.hpp"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace signalbox::psm {
namespace {

absl::Status wrong(absl::string_view behavior, absl::string_view required) {
  return absl::InvalidArgumentError(
      absl::StrCat("rpc-behavior: ", required, ", found \"", behavior, "\""));
}

// Applies one behaviour, without the name of a host. Returns whether it ends the RPC.
absl::StatusOr<bool> apply(absl::string_view behavior, int previous_attempts, Reaction& reaction) {
  constexpr int kLongestSleep = 3600;
  constexpr int kLastCode = grpc::StatusCode::UNAUTHENTICATED;
  absl::string_view number = behavior;
  int value = 0;
  if (behavior == "keep-open") {
    reaction.keeps_open = true;
    return true;
  }
  if (absl::ConsumePrefix(&number, "sleep-")) {
    if (!absl::SimpleAtoi(number, &value) || value < 0 || value > kLongestSleep)
      return wrong(behavior, "sleep-N needs 0 to 3600 seconds");
    reaction.delay += std::chrono::seconds(value);
    return false;
  }
  if (absl::ConsumePrefix(&number, "error-code-")) {
    if (!absl::SimpleAtoi(number, &value) || value < 0 || value > kLastCode)
      return wrong(behavior, "error-code-N needs a gRPC status code, 0 to 16");
    reaction.status = {static_cast<grpc::StatusCode>(value),
                       absl::StrCat("the RPC fails as rpc-behavior says: ", behavior)};
    if (value == grpc::StatusCode::OK) reaction.status = grpc::Status::OK;
    return true;
  }
  if (absl::ConsumePrefix(&number, "succeed-on-retry-attempt-")) {
    if (!absl::SimpleAtoi(number, &value) || value < 0)
      return wrong(behavior, "succeed-on-retry-attempt-N needs a number of attempts");
    return value == previous_attempts;
  }
  return wrong(behavior,
               "must be keep-open, sleep-N, error-code-N or succeed-on-retry-attempt-N, perhaps "
               "after \"hostname=NAME \"");
}

}  // namespace

absl::StatusOr<Reaction> reaction_to(const std::vector<std::string>& headers,
                                     const std::string& host,
                                     int previous_attempts) {
  Reaction reaction;
  for (const std::string& header : headers) {
    for (absl::string_view behavior : absl::StrSplit(header, ',')) {
      behavior = absl::StripAsciiWhitespace(behavior);
      const absl::string_view whole = behavior;
      if (absl::ConsumePrefix(&behavior, "hostname=")) {
        const std::size_t space = behavior.find(' ');
        if (space == 0 || space == absl::string_view::npos)
          return wrong(whole, "needs the form \"hostname=NAME BEHAVIOUR\"");
        if (behavior.substr(0, space) != host) continue;
        behavior = absl::StripLeadingAsciiWhitespace(behavior.substr(space));
      }
      const auto is_over = apply(behavior, previous_attempts, reaction);
      if (!is_over.ok()) return is_over.status();
      if (*is_over) return reaction;
    }
  }
  return reaction;
}

}  // namespace signalbox::psm
