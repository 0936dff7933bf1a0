// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_door.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace signalbox::channel {
namespace {

constexpr std::chrono::milliseconds kPause{100};
constexpr std::chrono::milliseconds kFirstRetake{1};
constexpr actors::SocketLoop::Id kListener = 1;

// Sends an error response. The bytes of the request are read first: if a socket is closed with
// unread bytes, the system resets the connection, and the client may lose the response.
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

void HttpDoor::turn_away(const AcceptedConnection& connection,
                         absl::string_view status,
                         absl::string_view why) {
  refuse(connection.descriptor, status, why);
  ::close(connection.descriptor);
}

HttpDoor::HttpDoor(int listener, Enter enter, HttpDoorLimits limits, LimitHit hit)
    : listener_(listener),
      enter_(std::move(enter)),
      limits_(limits),
      hit_(std::move(hit)),
      loop_(actors::SocketLoop::make("requests cannot be waited for").value_or(nullptr)),
      last_(kListener) {
  ::fcntl(*listener_, F_SETFL, ::fcntl(*listener_, F_GETFL) | O_NONBLOCK);
  if (loop_ == nullptr) return;
  take_spare();
  loop_->listen_for(kListener, *listener_, EPOLLIN);
  loop_->begin(*this);
}

HttpDoor::~HttpDoor() {
  if (loop_ != nullptr) loop_->stop();
}

void HttpDoor::happened(Id id) {
  if (id == kListener) return accept_all();
  const Place place = waiting_.find(id);
  if (place != waiting_.end()) look(place);
}

void HttpDoor::is_due(Id id) {
  if (id == kListener) {
    take_spare();
    loop_->listen_for(kListener, *listener_, EPOLLIN);
  } else if (waiting_.erase(id) > 0) {
    hit_(AdminLimit::kHttpSilent);
  }
}

void HttpDoor::accept_all() {
  for (;;) {
    AcceptedConnection fresh;
    fresh.peer_size = sizeof fresh.peer;
    fresh.descriptor = ::accept4(*listener_,
                                 reinterpret_cast<sockaddr*>(&fresh.peer),
                                 &fresh.peer_size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fresh.descriptor < 0) {
      const bool is_short =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (!is_short || !is_waiting_outside()) return;
      if (use_spare()) continue;
      if (waiting_.empty()) return pause();
      evict(waiting_.begin());  // Unless its request is complete, frees a descriptor.
      continue;
    }
    if (waiting_.size() == limits_.most) evict(waiting_.begin());
    const Id id = ++last_;
    const auto& waiting =
        waiting_.emplace(id, Waiting{actors::Descriptor(fresh.descriptor), fresh}).first->second;
    loop_->set_due(id, actors::SocketLoop::now() + limits_.patience);
    // EPOLLET (edge-triggered): the bytes stay in the socket, and without EPOLLET an incomplete
    // request would be reported again and again. Bytes that arrived before this call are reported,
    // too.
    loop_->listen_for(id, *waiting.socket, EPOLLIN | EPOLLRDHUP | EPOLLET);
  }
}

// Whether a connection can be accepted. accept() does not tell: without a descriptor it fails in
// the same way when no connection is there.
bool HttpDoor::is_waiting_outside() const {
  pollfd listener{.fd = *listener_, .events = POLLIN, .revents = 0};
  return ::poll(&listener, 1, 0) == 1;
}

// Frees the spare descriptor for a connection. False: it is used already.
bool HttpDoor::use_spare() {
  if (*spare_ < 0) return false;
  spare_ = actors::Descriptor();
  until_retake_ = kFirstRetake;
  loop_->set_due(kListener, actors::SocketLoop::now() + until_retake_);
  return true;
}

// Most requests end within milliseconds, so the first attempt comes soon. Other parts of the
// process need descriptors too, so later attempts are further apart.
void HttpDoor::take_spare() {
  if (*spare_ >= 0) return;
  spare_ = actors::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (*spare_ >= 0) return;
  until_retake_ = std::min(2 * until_retake_, kPause);
  loop_->set_due(kListener, actors::SocketLoop::now() + until_retake_);
}

// The system has no descriptor or memory for a connection, and none waits that could be closed.
// Accepts nothing for kPause: the listening socket stays readable, and the loop would spin.
void HttpDoor::pause() {
  loop_->listen_for(kListener, *listener_, 0);
  loop_->set_due(kListener, actors::SocketLoop::now() + kPause);
}

void HttpDoor::look(Place place) {
  const int descriptor = place->second.connection.descriptor;
  std::array<char, kLongestHeaders> bytes;
  const ssize_t size = ::recv(descriptor, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return close_waiting(place);
  const absl::string_view seen(bytes.data(), static_cast<std::size_t>(size));
  const auto end = end_of_headers(seen);
  absl::string_view status = "400 Bad Request";
  std::optional<std::string> flaw;
  if (seen.front() == '\r' || seen.front() == '\n') {
    // A request that begins with an empty line is refused: the HTTP library would skip empty lines,
    // and wait for the request line as long as empty lines come.
    flaw = "a request must begin with its request line";
  } else if (end) {
    flaw = flaw_of_headers(seen.substr(0, *end));
  } else if (seen.size() == bytes.size()) {
    hit_(AdminLimit::kHttpHeaders);
    status = "431 Request Header Fields Too Large";
    flaw = absl::StrCat("the headers must not be longer than ", bytes.size(), " bytes");
  }
  if (flaw) {
    refuse(descriptor, status, *flaw);
    return close_waiting(place);
  }
  if (end) enter_(take(place), seen.substr(0, *end));
}

// Makes room for another connection. The request of the evicted connection may be complete, if the
// loop has not handled the event of its last bytes yet. So look() is called first, which passes a
// complete request to enter_(). Otherwise the connection is closed.
void HttpDoor::evict(Place place) {
  const Id id = place->first;
  look(place);
  const Place still = waiting_.find(id);
  if (still == waiting_.end()) return;
  hit_(AdminLimit::kHttpWaiting);
  close_waiting(still);
}

void HttpDoor::close_waiting(Place place) {
  loop_->set_due(place->first, Instant::max());
  waiting_.erase(place);
}

AcceptedConnection HttpDoor::take(Place place) {
  Waiting taken = std::move(place->second);
  loop_->forget(place->first, *taken.socket);
  waiting_.erase(place);
  taken.socket.release();
  return taken.connection;
}

}  // namespace signalbox::channel
