// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_door.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace signalbox::channel {
namespace {

constexpr std::chrono::milliseconds kPause{100};

// Edges: a half request that lies in its socket is told once, not for as long as it lies there.
void watch(int events, int descriptor, std::uint32_t what) {
  epoll_event event{};
  event.events = what;
  event.data.fd = descriptor;
  ::epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event);
}

// What has come is read first: a socket that is closed with bytes in it takes the answer back.
void refuse(int descriptor, absl::string_view status, absl::string_view why) {
  std::array<char, 4096> ignored;
  while (::recv(descriptor, ignored.data(), ignored.size(), MSG_DONTWAIT) > 0) {
  }
  const std::string answer =
      absl::StrCat("HTTP/1.1 ",
                   status,
                   "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ",
                   why.size() + 1,
                   "\r\nConnection: close\r\n\r\n",
                   why,
                   "\n");
  [[maybe_unused]] const auto sent =
      ::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(descriptor, SHUT_WR);
}

}  // namespace

std::optional<std::size_t> end_of_headers(absl::string_view bytes) {
  const std::size_t strict = bytes.find("\n\r\n");
  const std::size_t lenient = bytes.find("\n\n");
  if (strict == absl::string_view::npos && lenient == absl::string_view::npos) return std::nullopt;
  return std::min(strict == absl::string_view::npos ? strict : strict + 3,
                  lenient == absl::string_view::npos ? lenient : lenient + 2);
}

std::optional<std::string> flaw_of_headers(absl::string_view headers) {
  if (absl::StrContains(headers, absl::string_view("\0", 1)))
    return "a request must have no NUL in its headers";
  // The library ends a header at a CR alone, too: a second Host could hide behind one.
  for (std::size_t at = headers.find('\r'); at != absl::string_view::npos;
       at = headers.find('\r', at + 1)) {
    if (at + 1 == headers.size() || headers[at + 1] != '\n')
      return "a request must have no CR without LF in its headers";
  }
  std::size_t hosts = 0;
  for (const absl::string_view line : absl::StrSplit(headers, '\n')) {
    const absl::string_view name = line.substr(0, line.find(':'));
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(name), "host")) ++hosts;
  }
  if (hosts <= 1) return std::nullopt;
  return absl::StrCat("Host: expected one, found ", hosts);
}

HttpDoor::HttpDoor(int listener, Enter enter, HttpDoorLimits limits)
    : listener_(listener),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      enter_(std::move(enter)),
      limits_(limits) {
  ::fcntl(listener_, F_SETFL, ::fcntl(listener_, F_GETFL) | O_NONBLOCK);
  watch(events_, listener_, EPOLLIN);
  watch(events_, stop_, EPOLLIN);
  if (is_open()) thread_ = std::thread([this] { run(); });
}

HttpDoor::~HttpDoor() {
  if (thread_.joinable()) {
    ::eventfd_write(stop_, 1);
    thread_.join();
  }
  while (!waiting_.empty())
    close_waiting(waiting_.begin());
  for (const int descriptor : {listener_, events_, stop_})
    ::close(descriptor);
}

void HttpDoor::run() {
  std::array<epoll_event, 64> happened{};
  for (;;) {
    const int count =
        ::epoll_wait(events_, happened.data(), static_cast<int>(happened.size()), patience());
    for (int i = 0; i < count; ++i) {
      const int descriptor = happened[static_cast<std::size_t>(i)].data.fd;
      if (descriptor == stop_) return;
      if (descriptor == listener_) {
        accept_all();
      } else if (const auto found = by_descriptor_.find(descriptor);
                 found != by_descriptor_.end()) {
        look(found->second);
      }
    }
    close_expired();
    go_on();
  }
}

// In milliseconds, rounded up; -1: until something happens.
int HttpDoor::patience() const {
  auto until = Clock::time_point::max();
  if (!waiting_.empty()) until = waiting_.front().until;
  if (paused_until_) until = std::min(until, *paused_until_);
  if (until == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

void HttpDoor::accept_all() {
  for (;;) {
    AcceptedConnection fresh;
    fresh.peer_size = sizeof fresh.peer;
    fresh.descriptor = ::accept4(listener_,
                                 reinterpret_cast<sockaddr*>(&fresh.peer),
                                 &fresh.peer_size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fresh.descriptor < 0) {
      const bool is_short =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (!is_short) return;
      if (waiting_.empty()) return pause();
      close_waiting(waiting_.begin());  // Its descriptor is for the one that comes.
      continue;
    }
    if (waiting_.size() == limits_.most) close_waiting(waiting_.begin());
    waiting_.push_back({fresh, Clock::now() + limits_.patience});
    const Place place = std::prev(waiting_.end());
    by_descriptor_.emplace(fresh.descriptor, place);
    watch(events_, fresh.descriptor, EPOLLIN | EPOLLRDHUP | EPOLLET);  // Tells what is there, too.
  }
}

// The listener is readable for as long as somebody waits there.
void HttpDoor::pause() {
  paused_until_ = Clock::now() + kPause;
  epoll_event nothing{};
  nothing.data.fd = listener_;
  ::epoll_ctl(events_, EPOLL_CTL_MOD, listener_, &nothing);
}

void HttpDoor::go_on() {
  if (!paused_until_ || *paused_until_ > Clock::now()) return;
  paused_until_.reset();
  epoll_event readable{};
  readable.events = EPOLLIN;
  readable.data.fd = listener_;
  ::epoll_ctl(events_, EPOLL_CTL_MOD, listener_, &readable);
}

void HttpDoor::look(Place place) {
  const int descriptor = place->connection.descriptor;
  std::array<char, kLongestHeaders> bytes;
  const ssize_t size = ::recv(descriptor, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return close_waiting(place);
  const absl::string_view seen(bytes.data(), static_cast<std::size_t>(size));
  const auto end = end_of_headers(seen);
  absl::string_view status = "400 Bad Request";
  std::optional<std::string> flaw;
  if (seen.front() == '\r' || seen.front() == '\n') {
    // The library would skip empty lines, and wait for more as long as they come.
    flaw = "a request must begin with its request line";
  } else if (end) {
    flaw = flaw_of_headers(seen.substr(0, *end));
  } else if (seen.size() == bytes.size()) {
    status = "431 Request Header Fields Too Large";
    flaw = absl::StrCat("the headers must not be longer than ", bytes.size(), " bytes");
  }
  if (flaw) {
    refuse(descriptor, status, *flaw);
    return close_waiting(place);
  }
  if (end) enter_(take(place));
}

void HttpDoor::close_expired() {
  const auto now = Clock::now();
  while (!waiting_.empty() && waiting_.front().until <= now)
    close_waiting(waiting_.begin());
}

void HttpDoor::close_waiting(Place place) {
  ::close(take(place).descriptor);
}

AcceptedConnection HttpDoor::take(Place place) {
  const AcceptedConnection taken = place->connection;
  ::epoll_ctl(events_, EPOLL_CTL_DEL, taken.descriptor, nullptr);
  by_descriptor_.erase(taken.descriptor);
  waiting_.erase(place);
  return taken;
}

}  // namespace signalbox::channel
