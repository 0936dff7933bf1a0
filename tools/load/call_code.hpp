// SPDX-License-Identifier: Apache-2.0
//
// call_code — how a call ended, as one number, whatever its protocol.
//
//   gRPC status, HTTP status, no response ─▶ EndedCall::code ─▶ [call_code] ─▶ failed or not, texts
//
//   0 … 16       gRPC's status code; 0 is OK
//   100 … 999    the status of an HTTP response
//   1000 + n     no HTTP response: libcurl's error n
//   1900 …       no HTTP response, for a reason of our own: NoResponse
//
// A call failed if its code is a gRPC status other than OK, an HTTP status of 500 or more, or if it
// has no response.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::tools {

inline constexpr int kCurlErrors = 1000;

enum class NoResponse : std::uint16_t {
  kNoPick = 1900,  ///< The pick of the call failed. A pick that waited too long is a timeout.
  kCancelled,
};

constexpr bool is_failure(int code) {
  return code != 0 && (code < 100 || code >= 500);
}

/// The gRPC code that a Pick gets, for outlier detection and metrics: OK for a call that did not
/// fail, else gRPC's code for that HTTP status. A call without a response is UNAVAILABLE, or
/// DEADLINE_EXCEEDED after a timeout. A gRPC status stays as it is.
int grpc_code_of(int code);

/// The code as the JSON of a report names it: "14", "503", "connect-failed", "curl-35".
std::string code_key(int code);
/// The inverse of code_key(); nullopt: `key` names no code.
std::optional<int> code_of_key(absl::string_view key);

/// The code as people read it: "14 UNAVAILABLE", "503", "connect-failed".
std::string code_text(int code);

}  // namespace signalbox::tools
