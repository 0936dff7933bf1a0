// SPDX-License-Identifier: Apache-2.0
#include "channel/extension_name.hpp"

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

// The names of all signalbox policies, which custom policies must not have.
template <std::size_t... index>
std::set<std::string, std::less<>> own_names(std::index_sequence<index...>) {
  return {std::string(
      policy_name(LbConfig(std::variant_alternative_t<index, LbConfig::variant>{})))...};
}

bool may_be_in_a_name(char c) {
  return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '/' && c != '"' && c != '\\';
}

std::string found(absl::string_view name) {
  return absl::StrCat(", found \"", absl::CEscape(name), "\"");
}

std::string what_is_wrong_with_its_letters(absl::string_view name) {
  if (name.empty()) return "must be set, found none";
  if (std::ranges::all_of(name, may_be_in_a_name)) return "";
  return absl::StrCat("must be printable, without spaces, slashes and quotes", found(name));
}

}  // namespace

std::string what_is_wrong_with_lb_policy_name(absl::string_view name) {
  static const auto ours =
      own_names(std::make_index_sequence<std::variant_size_v<LbConfig::variant>>());
  std::string wrong = what_is_wrong_with_its_letters(name);
  // In gRPC's service configs some policies have the suffix "_experimental": ring_hash_experimental
  // (A76). So a signalbox name with this suffix is refused, too.
  const bool is_ours =
      ours.contains(absl::StripSuffix(name, "_experimental")) || absl::StartsWith(name, "envoy.");
  if (wrong.empty() && is_ours)
    wrong = absl::StrCat("must be none of signalbox's own", found(name));
  return wrong;
}

// The refused prefixes belong to types of the xDS API itself: its filters, and the messages that
// wrap a filter's configuration.
std::string what_is_wrong_with_http_filter_type(absl::string_view type) {
  std::string wrong = what_is_wrong_with_its_letters(type);
  for (const absl::string_view prefix : {"envoy.", "xds.", "udpa.", "google.protobuf."}) {
    if (wrong.empty() && absl::StartsWith(type, prefix))
      wrong = absl::StrCat("must be none of the API's own", found(type));
  }
  return wrong;
}

}  // namespace signalbox::channel
