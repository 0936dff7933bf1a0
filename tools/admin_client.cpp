// SPDX-License-Identifier: Apache-2.0
#include "tools/admin_client.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

using channel::AdminAddress;
using channel::LoopbackAddress;
using channel::UnixAddress;

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestAnswer = std::size_t{1} << 30U;

class Socket {
 public:
  Socket(int family, Clock::time_point deadline)
      : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)), deadline_(deadline) {}

  ~Socket() { ::close(descriptor_); }

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  template <typename Name>
  bool connect(const Name& name) {
    return set_timeout() &&
           ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  }

  bool send(absl::string_view text) {
    while (!text.empty()) {
      if (!set_timeout()) return false;
      const ssize_t sent = ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// All bytes until the server closes; nullopt if an error or the deadline comes first, or if the
  /// bytes are more than kLongestAnswer.
  std::optional<std::string> receive() {
    std::string all;
    char part[64 << 10];
    while (all.size() <= kLongestAnswer && set_timeout()) {
      const ssize_t size = ::recv(descriptor_, part, sizeof part, 0);
      if (size < 0 && errno == EINTR) continue;
      if (size == 0) return all;
      if (size < 0) break;
      all.append(part, static_cast<std::size_t>(size));
    }
    return std::nullopt;
  }

 private:
  // Limits the next socket operation to the time that is left until the deadline. The operations
  // therefore end by the deadline, even if the server sends its answer in small pieces. False: no
  // time is left.
  bool set_timeout() {
    using std::chrono::microseconds;
    const auto left = std::chrono::ceil<microseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) return false;  // A timeout of 0 would mean: no timeout.
    const timeval time{.tv_sec = left / 1'000'000, .tv_usec = left % 1'000'000};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    return true;
  }

  int descriptor_;
  const Clock::time_point deadline_;
};

absl::Status no_connection(const AdminAddress& address, int error) {
  const std::string where = channel::to_string(address);
  if (error == ENOENT)
    return absl::NotFoundError(
        absl::StrCat(where,
                     ": there is no such socket; is the process running, with its admin "
                     "pages on (Runtime::serve_admin, signalbox demo --admin)?"));

  struct stat file{};

  const auto* local = std::get_if<UnixAddress>(&address);
  if (local != nullptr && ::stat(local->path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(where, ": what is there is no socket"));
  if (error == ECONNREFUSED)
    return absl::NotFoundError(
        absl::StrCat(where,
                     ": no process listens there; is the process still running, with its admin "
                     "pages on (Runtime::serve_admin, signalbox demo --admin)?"));
  if (error == EACCES)
    return absl::PermissionDeniedError(absl::StrCat(
        where, ": permission denied; ask as the socket's owner, or as one of its group"));
  return absl::UnavailableError(absl::StrCat(where, ": ", std::system_category().message(error)));
}

bool connect(Socket& socket, const UnixAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  return socket.connect(name);
}

bool connect(Socket& socket, const LoopbackAddress& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, address.ip.c_str(), &name.sin_addr) == 1) return socket.connect(name);
  sockaddr_in6 name6{};
  name6.sin6_family = AF_INET6;
  name6.sin6_port = name.sin_port;
  name6.sin6_addr = in6addr_loopback;
  return socket.connect(name6);
}

int family_of(const AdminAddress& address) {
  if (std::holds_alternative<UnixAddress>(address)) return AF_UNIX;
  return absl::StrContains(std::get<LoopbackAddress>(address).ip, ":") ? AF_INET6 : AF_INET;
}

// The value of Content-Length; nothing if the header is missing or no number.
std::optional<std::size_t> promised_length(absl::string_view head) {
  for (const absl::string_view line : absl::StrSplit(head, "\r\n")) {
    const std::pair<absl::string_view, absl::string_view> header =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    std::size_t length = 0;
    if (absl::EqualsIgnoreCase(header.first, "content-length") &&
        absl::SimpleAtoi(absl::StripAsciiWhitespace(header.second), &length))
      return length;
  }
  return std::nullopt;
}

absl::StatusOr<AdminAnswer> answer_of(const std::string& where, const std::string& answer) {
  const auto bad = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat(where, ": ", why));
  };
  const auto end = answer.find("\r\n\r\n");
  const auto head = absl::string_view(answer).substr(0, end);
  int code = 0;
  if (end == std::string::npos || !absl::StartsWith(head, "HTTP/1.") ||
      !absl::SimpleAtoi(absl::ClippedSubstr(head, std::string("HTTP/1.1 ").size(), 3), &code))
    return bad("what listens there does not speak HTTP");
  std::string body = answer.substr(end + 4);
  if (promised_length(head).value_or(body.size()) != body.size())
    return bad("the answer was cut off; did the process end?");
  return AdminAnswer{code, std::move(body)};
}

}  // namespace

absl::StatusOr<AdminAnswer> admin_ask(const AdminAddress& address,
                                      absl::string_view page,
                                      std::chrono::milliseconds patience) {
  const std::string where = channel::to_string(address);
  const Clock::time_point deadline = Clock::now() + patience;
  Socket socket(family_of(address), deadline);
  const bool is_connected =
      std::visit([&](const auto& to) { return connect(socket, to); }, address);
  const int error = errno;
  const auto too_late = [&](absl::string_view missing) {
    return absl::UnavailableError(
        absl::StrFormat("%s: no %s within %g s; is the process stopped, or very busy?",
                        where,
                        missing,
                        std::chrono::duration<double>(patience).count()));
  };
  if (!is_connected && Clock::now() >= deadline) return too_late("connection");
  if (!is_connected) return no_connection(address, error);
  const bool is_sent =
      socket.send(absl::StrCat("GET ", page, " HTTP/1.0\r\nHost: localhost\r\n\r\n"));
  const auto answer = is_sent ? socket.receive() : std::nullopt;
  if (!answer && Clock::now() >= deadline) return too_late("answer");
  if (!answer) return absl::UnavailableError(absl::StrCat(where, ": no answer"));
  return answer_of(where, *answer);
}

absl::StatusOr<std::string> admin_get(const AdminAddress& address,
                                      absl::string_view page,
                                      std::chrono::milliseconds patience) {
  auto answer = admin_ask(address, page, patience);
  if (!answer.ok()) return answer.status();
  if (answer->code == 200) return std::move(answer->body);
  const std::string why = absl::StrCat(
      channel::to_string(address), ": ", absl::StripTrailingAsciiWhitespace(answer->body));
  return answer->code == 400 ? absl::InvalidArgumentError(why) : absl::UnavailableError(why);
}

std::string query_value(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("-._~", c))
      out += c;
    else
      out += absl::StrFormat("%%%02X", byte);
  }
  return out;
}

}  // namespace signalbox::tools
