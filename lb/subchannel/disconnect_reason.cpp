// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/disconnect_reason.hpp"

#include <array>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace signalbox::lb {
namespace {

// The reason for each of HTTP/2's error codes, by code (RFC 9113, section 7).
constexpr std::array kGoaways{"GOAWAY NO_ERROR",
                              "GOAWAY PROTOCOL_ERROR",
                              "GOAWAY INTERNAL_ERROR",
                              "GOAWAY FLOW_CONTROL_ERROR",
                              "GOAWAY SETTINGS_TIMEOUT",
                              "GOAWAY STREAM_CLOSED",
                              "GOAWAY FRAME_SIZE_ERROR",
                              "GOAWAY REFUSED_STREAM",
                              "GOAWAY CANCEL",
                              "GOAWAY COMPRESSION_ERROR",
                              "GOAWAY CONNECT_ERROR",
                              "GOAWAY ENHANCE_YOUR_CALM",
                              "GOAWAY INADEQUATE_SECURITY",
                              "GOAWAY HTTP_1_1_REQUIRED"};
constexpr char kOtherGoaway[] = "GOAWAY UNKNOWN";

struct Word {
  const char* text;  ///< Part of an error text.
  const char* reason;
};

// Tried in this order, because one error may contain several of these texts.
constexpr std::array kWords{Word{"Connection reset by peer", "connection reset"},
                            Word{"connection reset", "connection reset"},
                            Word{"Broken pipe", "connection reset"},
                            Word{"Connection timed out", "connection timed out"},
                            Word{"connection timed out", "connection timed out"},
                            Word{"keepalive watchdog timeout", "connection timed out"},
                            Word{"ping timeout", "connection timed out"},
                            Word{"Software caused connection abort", "connection aborted"},
                            Word{"connection aborted", "connection aborted"},
                            Word{"socket error", kSocketError},
                            Word{"recvmsg:", kSocketError},
                            Word{"sendmsg:", kSocketError},
                            Word{"No route to host", kSocketError},
                            Word{"Network is unreachable", kSocketError}};

// The reason for the error code in gRPC's text, "GOAWAY received; Error code: 0; Debug Text: …".
// Without a code: the reason for NO_ERROR.
const char* goaway(absl::string_view error) {
  for (const char* word : kGoaways)
    if (absl::StrContains(error, word)) return word;
  if (absl::StrContains(error, kOtherGoaway)) return kOtherGoaway;
  constexpr absl::string_view kBefore = "Error code: ";
  const auto at = error.find(kBefore);
  if (at == absl::string_view::npos) return kGoaways.front();
  absl::string_view digits = error.substr(at + kBefore.size());
  digits = digits.substr(0, digits.find_first_not_of("0123456789"));
  std::size_t code = 0;
  return absl::SimpleAtoi(digits, &code) && code < kGoaways.size() ? kGoaways.at(code)
                                                                   : kOtherGoaway;
}

}  // namespace

const char* disconnect_reason(absl::string_view error) {
  if (absl::StrContains(error, "GOAWAY")) return goaway(error);
  for (const Word& word : kWords)
    if (absl::StrContains(error, word.text)) return word.reason;
  return kUnknownReason;
}

}  // namespace signalbox::lb
