// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_address.hpp"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <arpa/inet.h>
#include <sys/un.h>

namespace signalbox::channel {
namespace {

absl::Status refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "admin address '", text, "': ", why, "; expected unix:PATH, or HOST:PORT of the loopback"));
}

bool has_nul(absl::string_view text) {
  return text.find('\0') != absl::string_view::npos;
}

// The IP address of a loopback host; nullopt for any other host.
std::optional<std::string> loopback_ip(absl::string_view host) {
  if (absl::EqualsIgnoreCase(host, "localhost")) return "127.0.0.1";
  if (host == "[::1]") return "::1";
  if (has_nul(host)) return std::nullopt;  // inet_pton() would read only what is before it.
  in_addr ip{};
  std::string text(host);
  if (::inet_pton(AF_INET, text.c_str(), &ip) != 1 || ntohl(ip.s_addr) >> 24U != 127)
    return std::nullopt;
  return text;
}

// Splits at the last colon outside of brackets: the host is before the colon, the port after it.
std::pair<absl::string_view, absl::string_view> split(absl::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == absl::string_view::npos || absl::EndsWith(text, "]")) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

absl::StatusOr<AdminAddress> parse_unix(absl::string_view text, absl::string_view path) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty()) return refuse(text, "the path is empty");
  if (has_nul(path)) return refuse(text, "the path has a NUL");
  if (path.size() > kLongest) {
    return refuse(text, absl::StrCat("the path has ", path.size(), " bytes, more than ", kLongest));
  }
  return UnixAddress{std::string(path)};
}

}  // namespace

absl::StatusOr<AdminAddress> parse_admin_address(absl::string_view text) {
  absl::string_view path = text;
  if (absl::ConsumePrefix(&path, "unix:")) return parse_unix(text, path);
  const auto [host, port_text] = split(text);
  if (port_text.empty()) return refuse(text, "there is no port");
  std::uint32_t port = 0;
  if (!absl::SimpleAtoi(port_text, &port) || port > 65535)
    return refuse(text, absl::StrCat("'", port_text, "' is no port"));
  auto ip = loopback_ip(host);
  if (!ip) return refuse(text, absl::StrCat("'", host, "' is no loopback address"));
  return LoopbackAddress{*std::move(ip), static_cast<std::uint16_t>(port)};
}

std::string to_string(const AdminAddress& address) {
  if (const auto* local = std::get_if<UnixAddress>(&address))
    return absl::StrCat("unix:", local->path);
  const auto& loopback = std::get<LoopbackAddress>(address);
  const bool is_v6 = absl::StrContains(loopback.ip, ":");
  return is_v6 ? absl::StrCat("[", loopback.ip, "]:", loopback.port)
               : absl::StrCat(loopback.ip, ":", loopback.port);
}

bool is_loopback_host(absl::string_view host_header) {
  return loopback_ip(split(host_header).first).has_value();
}

}  // namespace signalbox::channel
