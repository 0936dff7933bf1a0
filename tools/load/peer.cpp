// SPDX-License-Identifier: Apache-2.0
#include "tools/load/peer.hpp"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace signalbox::tools {

std::string address_of_peer(const std::string& peer) {
  absl::string_view address = peer;
  const bool is_ip =
      absl::ConsumePrefix(&address, "ipv4:") || absl::ConsumePrefix(&address, "ipv6:");
  if (!is_ip && !absl::StartsWith(address, "unix:")) return "";
  if (is_ip) absl::ConsumePrefix(&address, "///");
  return absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

}  // namespace signalbox::tools
