// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_listener.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel/admin/http_door.hpp"

namespace signalbox::channel {
namespace {

constexpr mode_t kMode = 0660;

std::string error_text(int error) {
  return std::system_category().message(error);
}

absl::Status cannot_listen(const AdminAddress& address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("admin address ", to_string(address), ": cannot listen there: ", why));
}

sockaddr_un unix_name(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());  // parse_admin_address checked the size.
  return name;
}

// Casts an address of any family to the generic address of the socket API.
template <typename Name>
const sockaddr* generic(const Name& name) {
  return reinterpret_cast<const sockaddr*>(&name);
}

// Removes the socket at `path` if no process listens on it. Returns why the path cannot be used for
// a new socket; empty: it can be used.
std::string remove_stale(const std::string& path) {
  struct stat file{};

  if (::lstat(path.c_str(), &file) != 0) return errno == ENOENT ? "" : error_text(errno);
  if (!S_ISSOCK(file.st_mode)) return "a file is there that is no socket";
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return error_text(errno);
  const sockaddr_un name = unix_name(path);
  const int error = ::connect(probe, generic(name), sizeof name) == 0 ? 0 : errno;
  ::close(probe);
  if (error == 0 || error == EAGAIN) return "another process listens there";
  if (error != ECONNREFUSED) return error_text(error);
  return ::unlink(path.c_str()) == 0 ? "" : error_text(errno);
}

std::string folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

// A lock (flock) on the folder of a unix socket. Otherwise another process could take the socket's
// name between remove_stale() and listen(). An AdminListener holds the lock for a moment only. A
// lock that is held longer belongs to a program with another purpose, so the constructor waits for
// at most a second, and then goes on without the lock. If the folder cannot be opened, the
// constructor goes on at once.
class FolderTurn {
 public:
  explicit FolderTurn(const std::string& path)
      : folder_(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    for (int left = 100; left > 0 && ::flock(folder_, LOCK_EX | LOCK_NB) != 0; --left) {
      if (errno != EWOULDBLOCK) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  ~FolderTurn() {
    if (folder_ >= 0) ::close(folder_);
  }

  FolderTurn(const FolderTurn&) = delete;
  FolderTurn& operator=(const FolderTurn&) = delete;

 private:
  const int folder_;
};

int family_of(const AdminAddress& address) {
  if (std::holds_alternative<UnixAddress>(address)) return AF_UNIX;
  const bool is_v6 = absl::StrContains(std::get<LoopbackAddress>(address).ip, ":");
  return is_v6 ? AF_INET6 : AF_INET;
}

}  // namespace

absl::StatusOr<AdminListener> AdminListener::open(const AdminAddress& address) {
  const int descriptor = ::socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return cannot_listen(address, error_text(errno));
  AdminListener listener(address, descriptor);
  const auto* local = std::get_if<UnixAddress>(&address);
  std::optional<FolderTurn> turn;
  if (local != nullptr) turn.emplace(local->path);
  if (auto status = local != nullptr ? listener.bind_unix() : listener.bind_loopback();
      !status.ok())
    return status;
  if (auto status = listener.listen(); !status.ok()) return status;
  return listener;
}

AdminListener::AdminListener(AdminListener&& other) noexcept
    : address_(std::move(other.address_)),
      descriptor_(other.release()),
      file_(std::exchange(other.file_, File())) {}

AdminListener::~AdminListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (file_ == File()) return;
  const std::string& path = std::get<UnixAddress>(address_).path;
  if (file_at(path) == file_) ::unlink(path.c_str());
}

AdminListener::File AdminListener::file_at(const std::string& path) {
  struct stat file{};

  if (::lstat(path.c_str(), &file) != 0) return {};
  return {file.st_dev, file.st_ino};
}

absl::Status AdminListener::bind_unix() {
  const std::string& path = std::get<UnixAddress>(address_).path;
  if (const std::string why = remove_stale(path); !why.empty()) return cannot_listen(address_, why);
  const sockaddr_un name = unix_name(path);
  if (::bind(descriptor_, generic(name), sizeof name) != 0)
    return cannot_listen(address_, error_text(errno));
  file_ = file_at(path);
  if (::fchmodat(AT_FDCWD, path.c_str(), kMode, AT_SYMLINK_NOFOLLOW) != 0)
    return cannot_listen(address_, error_text(errno));
  return absl::OkStatus();
}

absl::Status AdminListener::bind_loopback() {
  auto& loopback = std::get<LoopbackAddress>(address_);
  sockaddr_in name{};
  sockaddr_in6 name6{};
  const bool is_v6 = family_of(address_) == AF_INET6;
  name.sin_family = AF_INET;
  name.sin_port = htons(loopback.port);
  ::inet_pton(AF_INET, loopback.ip.c_str(), &name.sin_addr);
  name6.sin6_family = AF_INET6;
  name6.sin6_port = name.sin_port;
  name6.sin6_addr = in6addr_loopback;

  const int on = 1;  // Old connections on the port must not block bind().
  ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int failed = is_v6 ? ::bind(descriptor_, generic(name6), sizeof name6)
                           : ::bind(descriptor_, generic(name), sizeof name);
  if (failed != 0) return cannot_listen(address_, error_text(errno));

  sockaddr_storage taken{};
  socklen_t size = sizeof taken;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&taken), &size);
  // `taken` may be an IPv6 address. The port has the same offset in sockaddr_in and sockaddr_in6.
  std::memcpy(&name, &taken, sizeof name);
  loopback.port = ntohs(name.sin_port);
  return absl::OkStatus();
}

absl::Status AdminListener::listen() {
  if (::listen(descriptor_, kBacklog) != 0) return cannot_listen(address_, error_text(errno));
  return absl::OkStatus();
}

}  // namespace signalbox::channel
