// SPDX-License-Identifier: Apache-2.0
#include "lb/session/session_cookie.hpp"

#include <algorithm>
#include <chrono>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace signalbox::lb {
namespace {

// Returns the text before the first `separator`, and removes both from `text`. Without a separator,
// takes the whole text.
absl::string_view take_until(absl::string_view& text, char separator) {
  const std::size_t end = find_byte(text, separator);
  const absl::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// Reads a decimal number of 1 to `most_digits` digits. nullopt: the text is none.
std::optional<unsigned> number_in(absl::string_view text, std::size_t most_digits) {
  if (text.empty() || text.size() > most_digits) return std::nullopt;
  unsigned number = 0;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = 10 * number + static_cast<unsigned>(c - '0');
  }
  return number;
}

bool is_ipv4(absl::string_view text) {
  for (int place = 0; place < 4; ++place) {
    const bool is_last = place == 3;
    if (is_last == absl::StrContains(text, ".")) return false;
    const absl::string_view digits = take_until(text, '.');
    const auto number = number_in(digits, 3);
    const bool leads_with_zero = digits.size() > 1 && digits.front() == '0';
    if (!number || *number > 255 || leads_with_zero) return false;
  }
  return true;
}

bool is_group(absl::string_view text) {
  return !text.empty() && text.size() <= 4 && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

// Counts the colon-separated groups of an IPv6 address. An IPv4 address at the end counts as two.
// nullopt: a part is no group.
std::optional<int> groups_in(absl::string_view text, bool may_end_with_ipv4) {
  if (text.empty()) return 0;
  int groups = 0;
  while (true) {
    const bool is_last = !absl::StrContains(text, ":");
    const absl::string_view group = take_until(text, ':');
    if (is_last && may_end_with_ipv4 && is_ipv4(group)) return groups + 2;
    if (!is_group(group)) return std::nullopt;
    ++groups;
    if (is_last) return groups;
  }
}

bool is_ipv6(absl::string_view text) {
  constexpr int kGroups = 8;
  const std::size_t gap = text.find("::");
  if (gap == absl::string_view::npos) return groups_in(text, true) == kGroups;
  const auto before = groups_in(text.substr(0, gap), false);
  const auto after = groups_in(text.substr(gap + 2), true);
  return before && after && *before + *after < kGroups;
}

constexpr absl::string_view kClusterPrefix = "cluster:";

// Reads a cookie in gRPC's form, "ip:port,ip:port;cluster", into `host`. nullopt: success.
std::optional<CookieFlaw> parse_grpc_form(absl::string_view text, CookieHost& host) {
  const absl::string_view hosts = take_until(text, ';');
  absl::string_view rest = hosts;
  for (std::size_t left = kMostCookieHosts; left > 0; --left) {
    const bool is_last = !absl::StrContains(rest, ",");
    if (!is_ip_and_port(take_until(rest, ','))) return CookieFlaw::kHost;
    if (!is_last) continue;
    host = {hosts, text, CookieForm::kGrpc};
    return std::nullopt;
  }
  return CookieFlaw::kTooManyHosts;
}

}  // namespace

absl::string_view said_of(CookieFlaw flaw) {
  switch (flaw) {
    case CookieFlaw::kTooMany:
      return "it is not among the first 128 cookies, or not in the first 64 KiB of them";
    case CookieFlaw::kTooLong:
      return "it decodes to 4 KiB or more";
    case CookieFlaw::kEncoding:
      return "it is not base64";
    case CookieFlaw::kSeal:
      return "it is not sealed with one of our keys, for this cookie and this target";
    case CookieFlaw::kHost:
      return "it does not begin with an IP address and a port";
    case CookieFlaw::kMessage:
      return "it is not the message that Envoy writes, of an IP address with a port and a time";
    case CookieFlaw::kTwoForms:
      return "gRPC and Envoy would each find another host in it";
    case CookieFlaw::kTooManyHosts:
      return "it names more than 8 addresses";
  }
  return "";
}

void CookieSearch::look_through(absl::string_view header) {
  while (!is_over() && !header.empty()) {
    const std::size_t end = find_byte(header.substr(0, bytes_left_ + 1), ';');
    if (cookies_left_ == 0 || end > bytes_left_) {
      found_.is_cut = true;
      return;
    }
    --cookies_left_;
    absl::string_view value = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    bytes_left_ -= std::min(end + 1, bytes_left_);
    const absl::string_view its_name = absl::StripAsciiWhitespace(take_until(value, '='));
    if (its_name != name_) continue;
    value = absl::StripAsciiWhitespace(value);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    found_.value = value;
  }
}

std::optional<CookieFlaw> decode_cookie(absl::string_view value, std::string& text) {
  if (value.size() > kLongestCookieValue) return CookieFlaw::kTooLong;
  if (!absl::Base64Unescape(value, &text)) return CookieFlaw::kEncoding;
  return std::nullopt;
}

bool is_ip_and_port(absl::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return false;
  const auto port = number_in(text.substr(colon + 1), 5);
  if (!port || *port > 65'535) return false;
  absl::string_view ip = text.substr(0, colon);
  if (!absl::ConsumePrefix(&ip, "[")) return is_ipv4(ip);
  return absl::ConsumeSuffix(&ip, "]") && is_ipv6(ip);
}

bool CookieHost::names_hosts(absl::string_view all) const {
  return hosts == (form == CookieForm::kEnvoy ? first_host(all) : all);
}

bool CookieHost::names_cluster(absl::string_view name) const {
  return cluster == name || without_cluster_prefix(cluster) == name;
}

std::optional<absl::string_view> without_cluster_prefix(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kClusterPrefix)) return std::nullopt;
  return text;
}

std::optional<CookieFlaw> parse_cookie_host(absl::string_view text, CookieHost& host) {
  const auto message = read_envoy_cookie(text);
  const bool has_address = message && !message->address.empty();
  const auto flaw = parse_grpc_form(text, host);
  if (!flaw) {
    if (!has_address) return std::nullopt;
    host = {};
    return CookieFlaw::kTwoForms;
  }
  if (flaw == CookieFlaw::kTooManyHosts) return flaw;
  if (has_address && message->is_plain && is_ip_and_port(message->address)) {
    host = {message->address, message->cluster, CookieForm::kEnvoy};
    return std::nullopt;
  }
  const bool begins_as_message =
      !text.empty() && absl::ascii_iscntrl(static_cast<unsigned char>(text.front()));
  return begins_as_message ? CookieFlaw::kMessage : CookieFlaw::kHost;
}

absl::string_view first_host(absl::string_view hosts) {
  return hosts.substr(0, hosts.find(','));
}

void write_cookie_host(absl::string_view hosts, absl::string_view cluster, std::string& text) {
  text.assign(hosts.data(), hosts.size()).append(1, ';').append(cluster.data(), cluster.size());
}

std::string plain_cookie(absl::string_view hosts, absl::string_view cluster) {
  std::string text;
  write_cookie_host(hosts, cluster, text);
  return absl::Base64Escape(text);
}

std::string attributes_of(const SessionCookie& cookie) {
  std::string attributes = "; HttpOnly";
  if (!cookie.path.empty()) absl::StrAppend(&attributes, "; Path=", cookie.path);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(cookie.ttl).count();
  if (seconds > 0) absl::StrAppend(&attributes, "; Max-Age=", seconds);
  return attributes;
}

}  // namespace signalbox::lb
