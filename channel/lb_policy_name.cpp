// SPDX-License-Identifier: Apache-2.0
#include "channel/lb_policy_name.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "messages/lb_config.hpp"

namespace signalbox::channel {
namespace {

// Every policy of our own, by its name.
template <std::size_t... index>
std::set<std::string, std::less<>> own_names(std::index_sequence<index...>) {
  return {std::string(
      policy_name(LbConfig(std::variant_alternative_t<index, LbConfig::variant>{})))...};
}

bool may_be_in_a_name(char c) {
  return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '/' && c != '"' && c != '\\';
}

}  // namespace

std::string what_is_wrong_with_lb_policy_name(absl::string_view name) {
  static const auto ours =
      own_names(std::make_index_sequence<std::variant_size_v<LbConfig::variant>>());
  const std::string found = absl::StrCat(", found \"", absl::CEscape(name), "\"");
  if (name.empty()) return "must be set, found none";
  if (!std::ranges::all_of(name, may_be_in_a_name))
    return absl::StrCat("must be printable, without spaces, slashes and quotes", found);
  // gRPC's names for them end so, in its structures (A76).
  if (ours.contains(absl::StripSuffix(name, "_experimental")) || absl::StartsWith(name, "envoy."))
    return absl::StrCat("must be none of signalbox's own", found);
  return "";
}

}  // namespace signalbox::channel
