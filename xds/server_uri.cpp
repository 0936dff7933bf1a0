// SPDX-License-Identifier: Apache-2.0
#include "xds/server_uri.hpp"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace signalbox::xds {
namespace {

bool is_unix(absl::string_view server_uri) {
  return absl::StartsWith(server_uri, "unix:") || absl::StartsWith(server_uri, "unix-abstract:");
}

}  // namespace

absl::string_view host_of(absl::string_view address) {
  if (absl::ConsumePrefix(&address, "[")) return address.substr(0, address.find(']'));
  const std::size_t colon = address.find(':');
  return address.rfind(':') == colon ? address.substr(0, colon) : address;
}

std::string server_host(absl::string_view server_uri) {
  if (is_unix(server_uri)) return "";
  for (const absl::string_view scheme : {"dns:", "ipv4:", "ipv6:", "passthrough:"}) {
    if (!absl::ConsumePrefix(&server_uri, scheme)) continue;
    // "///host" and "//resolver/host": the path names the server.
    if (absl::ConsumePrefix(&server_uri, "//")) {
      const std::size_t path = server_uri.find('/');
      server_uri.remove_prefix(path == absl::string_view::npos ? server_uri.size() : path + 1);
    }
    break;
  }
  const std::string address =
      absl::StrReplaceAll(server_uri, {{"%5B", "["}, {"%5b", "["}, {"%5D", "]"}, {"%5d", "]"}});
  return std::string(host_of(address));
}

bool is_loopback(absl::string_view server_uri) {
  if (is_unix(server_uri)) return true;
  const std::string host = server_host(server_uri);
  if (absl::EqualsIgnoreCase(host, "localhost") || host == "::1") return true;
  // "127.example" is a host name, no address.
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

std::string dial_target(absl::string_view server_uri) {
  absl::string_view path = server_uri;
  if (!absl::ConsumePrefix(&path, "unix:///")) return std::string(server_uri);
  return absl::StrCat("unix:/", path.substr(std::min(path.find_first_not_of('/'), path.size())));
}

}  // namespace signalbox::xds
