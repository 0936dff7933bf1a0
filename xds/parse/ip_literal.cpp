// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/ip_literal.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace signalbox::xds {
namespace {

constexpr std::size_t kGroups = 8;
using Groups = std::array<std::uint16_t, kGroups>;
using Quad = std::array<std::uint8_t, 4>;

// Digits of one IPv4 part: no sign, no leading zero (which some parsers read as octal).
bool parse_part(absl::string_view text, std::uint8_t& part) {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return false;
  int value = 0;
  for (const char digit : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) return false;
    value = value * 10 + (digit - '0');
  }
  part = static_cast<std::uint8_t>(value);
  return value <= 255;
}

std::optional<Quad> parse_v4(absl::string_view text) {
  Quad quad{};
  for (std::size_t i = 0; i < quad.size(); ++i) {
    const std::size_t dot = text.find('.');
    const bool last = i + 1 == quad.size();
    if (last != (dot == absl::string_view::npos)) return std::nullopt;
    if (!parse_part(text.substr(0, dot), quad[i])) return std::nullopt;
    if (!last) text.remove_prefix(dot + 1);
  }
  return quad;
}

bool parse_group(absl::string_view text, std::uint16_t& group) {
  if (text.empty() || text.size() > 4) return false;
  int value = 0;
  for (const char digit : text) {
    const auto byte = static_cast<unsigned char>(digit);
    if (!absl::ascii_isxdigit(byte)) return false;
    const char lower = absl::ascii_tolower(byte);
    value = value * 16 + (absl::ascii_isdigit(byte) ? lower - '0' : lower - 'a' + 10);
  }
  group = static_cast<std::uint16_t>(value);
  return true;
}

// Groups between colons. The last may be an IPv4 address, which counts as two. `text` may be empty.
bool parse_groups(absl::string_view text, bool v4_allowed, std::vector<std::uint16_t>& groups) {
  if (text.empty()) return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (last && v4_allowed && absl::StrContains(parts[i], '.')) {
      const auto quad = parse_v4(parts[i]);
      if (!quad.has_value()) return false;
      groups.push_back(static_cast<std::uint16_t>((*quad)[0] << 8 | (*quad)[1]));
      groups.push_back(static_cast<std::uint16_t>((*quad)[2] << 8 | (*quad)[3]));
      continue;
    }
    std::uint16_t group = 0;
    if (!parse_group(parts[i], group)) return false;
    groups.push_back(group);
  }
  return true;
}

// Eight groups, or fewer groups and one "::", which stands for at least one zero group.
std::optional<Groups> parse_v6(absl::string_view text) {
  // The longest IPv6 address has 45 bytes. Longer texts are refused before they are split.
  if (text.size() > 45) return std::nullopt;
  std::vector<std::uint16_t> front;
  std::vector<std::uint16_t> back;
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != absl::string_view::npos;
  if (!parse_groups(text.substr(0, gap), !has_gap, front)) return std::nullopt;
  if (has_gap && !parse_groups(text.substr(gap + 2), true, back)) return std::nullopt;
  const std::size_t given = front.size() + back.size();
  if (has_gap ? given >= kGroups : given != kGroups) return std::nullopt;
  Groups groups{};
  std::copy(front.begin(), front.end(), groups.begin());
  std::copy_backward(back.begin(), back.end(), groups.end());
  return groups;
}

struct Run {
  std::size_t start = 0;
  std::size_t length = 0;
};

// The zeros to replace by "::": the first of the longest runs of two or more (RFC 5952, 4.2).
Run longest_zeros(const Groups& groups) {
  Run best;
  Run run;
  for (std::size_t i = 0; i < kGroups; ++i) {
    run = groups[i] != 0 ? Run{i + 1, 0} : Run{run.start, run.length + 1};
    if (run.length > best.length) best = run;
  }
  return best.length >= 2 ? best : Run{kGroups, 0};
}

std::string to_text(const Quad& quad) {
  return absl::StrCat(quad[0], ".", quad[1], ".", quad[2], ".", quad[3]);
}

std::string to_text(const Groups& groups) {
  const bool maps_v4 =
      std::all_of(
          groups.begin(), groups.begin() + 5, [](std::uint16_t group) { return group == 0; }) &&
      groups[5] == 0xffff;
  if (maps_v4) {
    const Quad quad = {static_cast<std::uint8_t>(groups[6] >> 8),
                       static_cast<std::uint8_t>(groups[6]),
                       static_cast<std::uint8_t>(groups[7] >> 8),
                       static_cast<std::uint8_t>(groups[7])};
    return absl::StrCat("::ffff:", to_text(quad));
  }
  const Run zeros = longest_zeros(groups);
  std::string text;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == zeros.start) {
      text += "::";
      i += zeros.length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    absl::StrAppend(&text, absl::Hex(groups[i]));
  }
  return text;
}

}  // namespace

std::optional<std::string> canonical_ip(absl::string_view text) {
  // parse_v4() accepts only the canonical form.
  if (parse_v4(text).has_value()) return std::string(text);
  if (const auto groups = parse_v6(text)) return to_text(*groups);
  return std::nullopt;
}

}  // namespace signalbox::xds
