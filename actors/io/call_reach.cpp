// SPDX-License-Identifier: Apache-2.0
#include "actors/io/call_reach.hpp"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::actors {

Reach judge_reach(const CallFacts& facts, absl::FunctionRef<bool()> leaves_ready) {
  if (facts.has_headers) return Reach::kServer;
  const auto says = [&facts](absl::string_view message) {
    return absl::StrContains(facts.error, absl::StrCat("grpc_message:\"", message, "\""));
  };
  const bool is_refused =
      facts.trailer_entries == 1 && says("Received RST_STREAM with error code 7");
  if (is_refused) return Reach::kRefused;
  const bool looks_left_out = says("GOAWAY received") || says("Transport closed");
  if (facts.has_no_transport) {
    if (!absl::StrContains(facts.error, "Error received from peer")) return Reach::kNowhere;
    if (!looks_left_out || !leaves_ready()) return Reach::kServer;
    return facts.trailer_entries > 1 || !facts.was_taken ? Reach::kNowhere : Reach::kServer;
  }
  const bool is_left_out = looks_left_out && facts.trailer_entries == 2 && leaves_ready();
  return is_left_out ? Reach::kRefused : Reach::kServer;
}

}  // namespace signalbox::actors
