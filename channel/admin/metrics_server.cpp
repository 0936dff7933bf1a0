// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/metrics_server.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::channel {
namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

bool is_port(absl::string_view text) {
  std::uint32_t port = 0;
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
         absl::SimpleAtoi(text, &port) && port <= 65535;
}

absl::StatusOr<HostAndPort> parse(absl::string_view text) {
  if (is_port(text)) return HostAndPort{"127.0.0.1", std::string(text)};
  const std::size_t colon = text.rfind(':');
  absl::string_view host = text.substr(0, colon);
  const bool has_brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  const bool is_v6 = absl::StrContains(host, ":");
  const bool is_good = colon != absl::string_view::npos && !host.empty() && is_v6 == has_brackets &&
                       is_port(text.substr(colon + 1));
  if (is_good) return HostAndPort{std::string(host), std::string(text.substr(colon + 1))};
  return absl::InvalidArgumentError(absl::StrCat(
      "metrics cannot be served on '", text, "': expected host:port, or a port of 127.0.0.1"));
}

int port_of(int descriptor) {
  sockaddr_storage taken{};
  socklen_t size = sizeof taken;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&taken), &size);
  sockaddr_in name{};  // IPv6 has its port in the same place.
  std::memcpy(&name, &taken, sizeof name);
  return ntohs(name.sin_port);
}

// Returns a listening socket, or -1; errno then has the reason.
int listen_on(const addrinfo& name) {
  const int descriptor = ::socket(name.ai_family, name.ai_socktype | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const int on = 1;  // Old connections on the port must not block bind().
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(descriptor, name.ai_addr, name.ai_addrlen) == 0 && ::listen(descriptor, kBacklog) == 0)
    return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

absl::StatusOr<int> listen_on(const HostAndPort& where) {
  const auto cannot = [&](absl::string_view why) {
    const bool is_v6 = absl::StrContains(where.host, ":");
    const std::string host = is_v6 ? absl::StrCat("[", where.host, "]") : where.host;
    return absl::UnavailableError(
        absl::StrCat("metrics cannot be served on ", host, ":", where.port, ": ", why));
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &found);
  if (failed != 0) return cannot(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> names(found, &::freeaddrinfo);
  int descriptor = -1;
  for (const addrinfo* name = found; name != nullptr && descriptor < 0; name = name->ai_next)
    descriptor = listen_on(*name);
  if (descriptor < 0) return cannot(std::system_category().message(errno));
  return descriptor;
}

AdminResponse metrics_page(const AdminRequest& request, const std::function<std::string()>& text) {
  if (request.method != "GET")
    return {.status = 405, .body = absl::StrCat("expected GET, got ", request.method, "\n")};
  if (request.path != "/metrics")
    return {.status = 404, .body = "there is no such page; there is /metrics\n"};
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = text()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::start(
    const std::string& address, std::function<std::string()> text, LimitHit hit) {
  const auto where = parse(address);
  if (!where.ok()) return where.status();
  const auto descriptor = listen_on(*where);
  if (!descriptor.ok()) return descriptor.status();
  const int port = port_of(*descriptor);
  auto http = HttpServer::start(
      *descriptor,
      [text = std::move(text)](const AdminRequest& request) { return metrics_page(request, text); },
      {.hit = std::move(hit)});
  if (http == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("metrics cannot be served on ", address, ": the HTTP server does not start"));
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(port, std::move(http)));
}

}  // namespace signalbox::channel
