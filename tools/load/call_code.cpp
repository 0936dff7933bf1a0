// SPDX-License-Identifier: Apache-2.0
#include "tools/load/call_code.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace signalbox::tools {
namespace {

// The names are part of the report's JSON. libcurl's numbers of errors never change.
constexpr int kTimeout = kCurlErrors + 28;  // CURLE_OPERATION_TIMEDOUT
constexpr std::array<std::pair<int, absl::string_view>, 10> kNames{
    {{kCurlErrors + 1, "no-http"},  // CURLE_UNSUPPORTED_PROTOCOL
     {kCurlErrors + 7, "connect-failed"},
     {kCurlErrors + 8, "bad-response"},  // CURLE_WEIRD_SERVER_REPLY
     {kCurlErrors + 18, "partial-response"},
     {kTimeout, "timeout"},
     {kCurlErrors + 52, "empty-response"},
     {kCurlErrors + 55, "send-failed"},
     {kCurlErrors + 56, "receive-failed"},
     {static_cast<int>(NoResponse::kNoPick), "no-pick"},
     {static_cast<int>(NoResponse::kCancelled), "cancelled"}}};

constexpr absl::string_view kOtherError = "curl-";

}  // namespace

int grpc_code_of(int code) {
  if (code < 100) return code;
  const auto status = [code] {
    if (!is_failure(code)) return absl::StatusCode::kOk;
    if (code == kTimeout) return absl::StatusCode::kDeadlineExceeded;
    const bool is_unknown = code < kCurlErrors && (code < 502 || code > 504);
    return is_unknown ? absl::StatusCode::kUnknown : absl::StatusCode::kUnavailable;
  };
  return static_cast<int>(status());
}

std::string code_key(int code) {
  const auto* const known =
      std::ranges::find(kNames, code, [](const auto& row) { return row.first; });
  if (known != kNames.end()) return std::string(known->second);
  return code < kCurlErrors ? absl::StrCat(code) : absl::StrCat(kOtherError, code - kCurlErrors);
}

std::optional<int> code_of_key(absl::string_view key) {
  const auto* const known =
      std::ranges::find(kNames, key, [](const auto& row) { return row.second; });
  if (known != kNames.end()) return known->first;
  const int base = absl::ConsumePrefix(&key, kOtherError) ? kCurlErrors : 0;
  int number = 0;
  if (!absl::SimpleAtoi(key, &number)) return std::nullopt;
  return base + number;
}

std::string code_text(int code) {
  if (code >= 100) return code_key(code);
  const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
  return name.empty() ? absl::StrCat(code) : absl::StrCat(code, " ", name);
}

}  // namespace signalbox::tools
