// SPDX-License-Identifier: Apache-2.0
#include "actors/io/socket_dialer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "actors/io/first_bytes.hpp"

namespace signalbox::actors {
namespace {

// Parses "unix:/path"; length 0: the path is too long for a socket.
SocketAddress unix_address(absl::string_view path) {
  SocketAddress parsed;
  auto* const name = reinterpret_cast<sockaddr_un*>(&parsed.storage);
  if (path.empty() || path.size() >= sizeof(name->sun_path)) return parsed;
  name->sun_family = AF_UNIX;
  std::memcpy(name->sun_path, path.data(), path.size());
  parsed.length = sizeof(*name);
  return parsed;
}

SocketAddress address_of(const Address& address) {
  absl::string_view text = address.str();
  return absl::ConsumePrefix(&text, "unix:") ? unix_address(text)
                                             : parse_socket_address(address.str());
}

// Why no connection could be made to a path. The system says "Connection refused" for a directory
// or a plain file, too.
std::string why_not(const SocketAddress& to, int error) {
  std::string why = absl::StrCat("Failed to connect to remote host: ", std::strerror(error));
  if (to.storage.ss_family != AF_UNIX) return why;
  if (error == EAGAIN) return absl::StrCat(why, ": the server's backlog is full");
  struct stat found{};
  const auto* const name = reinterpret_cast<const sockaddr_un*>(&to.storage);
  if (::stat(name->sun_path, &found) != 0 || S_ISSOCK(found.st_mode)) return why;
  return absl::StrCat(
      why, S_ISDIR(found.st_mode) ? ": the path is a directory" : ": the path is no socket");
}

// Sets the options that gRPC 1.51 sets on its own sockets.
void set_options(const Descriptor& socket, std::optional<std::chrono::milliseconds> user_timeout) {
  const auto set = [&socket](int level, int name, int value) {
    ::setsockopt(*socket, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_REUSEADDR, 1);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (user_timeout) set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(user_timeout->count()));
}

constexpr char kBeforeSettings[] = ", before SETTINGS came";

// Whether the server has ended its side of the connection. Peeking does not tell while there are
// bytes to peek at.
bool has_hung_up(const Descriptor& socket) {
  pollfd state{*socket, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) == 1;
}

struct Limit {
  Instant due;
  std::function<void(absl::string_view so_far)> over;
};

// The part of a dial that is needed until the socket is passed on.
struct Opening {
  bool is_connected = false;
  Descriptor socket{};
  SocketAddress to{};
  Instant begun{};
  std::optional<SilenceDeadline> silence{};  ///< nullopt: not connected, or the server has spoken.
  FirstBytes heard{};
  std::vector<Limit> limits{};
};

// A dial, until it fails or hears silence, or until the line of its connection has ended. There may
// be thousands of connections, so a dial is small once its socket was passed on.
struct Dial {
  std::shared_ptr<DialListener> listener;
  std::unique_ptr<Opening> opening;  ///< Null: the socket was passed on.
  std::weak_ptr<SocketLine> line{};
  bool has_line = false;  ///< The line was made. Its end ends the dial.
};

}  // namespace

class SocketDialer::Loop final : public SocketLoop::Handler {
 public:
  Loop(std::unique_ptr<SocketLoop> loop, std::chrono::milliseconds silence, Connect connect)
      : silence_(silence), connect_(std::move(connect)), loop_(std::move(loop)) {
    loop_->begin(*this);
  }

  // Afterwards no thread uses the dials. Lines may keep this object for longer than their sockets
  // are wanted.
  void stop() {
    loop_->stop();
    std::map<Id, Dial>().swap(dials_);
  }

  Id next_id() { return ++last_id_; }

  void post(std::function<void()> order) { loop_->post(std::move(order)); }

  // The functions below run on the loop's thread.

  void begin(Id id,
             const Address& address,
             std::optional<std::chrono::milliseconds> user_timeout,
             std::shared_ptr<DialListener> listener) {
    Dial& dial = dials_[id];
    dial.listener = std::move(listener);
    dial.opening = std::make_unique<Opening>();
    Opening& opening = *dial.opening;
    opening.to = address_of(address);
    opening.begun = SocketLoop::now();
    opening.heard = judge_first_bytes("");
    if (opening.to.length == 0)
      return fail(id, "it is neither an IP address with a port nor a unix: path");
    opening.socket = make_socket(opening.to);
    if (*opening.socket < 0)
      return fail(id, absl::StrCat("no socket could be made: ", std::strerror(errno)));
    if (opening.to.storage.ss_family != AF_UNIX) set_options(opening.socket, user_timeout);
    if (!connect_(opening.socket, opening.to)) return fail(id, why_not(opening.to, errno));
    if (!loop_->listen_for(id, *opening.socket, EPOLLOUT))
      fail(id, absl::StrCat("the socket cannot be watched: ", std::strerror(errno)));
  }

  void limit(Id id, Limit limit) {
    const auto found = dials_.find(id);
    if (found == dials_.end() || found->second.opening == nullptr) return;
    Opening& opening = *found->second.opening;
    if (opening.silence) opening.silence->leave_time(SocketLoop::now(), limit.due);
    opening.limits.push_back(std::move(limit));
    set_timer(id, opening);
  }

  // Takes the socket out of the epoll set before it is closed: the set keeps a closed socket while
  // a forked child has it open. A dial without a socket has no timer.
  void forget(Id id) {
    const auto found = dials_.find(id);
    if (found == dials_.end()) return;
    const Opening* const opening = found->second.opening.get();
    if (opening != nullptr && *opening->socket >= 0) loop_->forget(id, *opening->socket);
    dials_.erase(found);
  }

  void set_line(Id id, const std::shared_ptr<SocketLine>& line) {
    Dial& dial = dials_.at(id);
    dial.line = line;
    dial.has_line = true;
  }

  void end(Id id, bool has_error = false) {
    const auto found = dials_.find(id);
    if (found == dials_.end()) return;
    if (const auto line = found->second.line.lock()) line->record_end();
    take(id)->ended(has_error);
  }

 private:
  void happened(Id id) override {
    const auto found = dials_.find(id);
    if (found == dials_.end()) return;
    if (Opening* const opening = found->second.opening.get(); opening != nullptr)
      return opening->is_connected ? listen(id, *opening) : connected(id, *opening);
    // The system always reports EPOLLERR, also for notices on the socket's error queue.
    if ((loop_->events() & (EPOLLRDHUP | EPOLLHUP)) != 0)
      end(id, (loop_->events() & EPOLLERR) != 0);
  }

  void is_due(Id id) override {
    const auto found = dials_.find(id);
    if (found == dials_.end() || found->second.opening == nullptr) return;
    Opening& opening = *found->second.opening;
    const Instant now = SocketLoop::now();
    if (opening.silence && opening.silence->at() <= now)
      return is_silent(opening) ? take(id)->is_silent() : listen(id, opening);
    const auto later = std::ranges::stable_partition(
        opening.limits, [now](const Limit& limit) { return limit.due <= now; });
    std::vector<Limit> over(std::make_move_iterator(opening.limits.begin()),
                            std::make_move_iterator(later.begin()));
    opening.limits.erase(opening.limits.begin(), later.begin());
    set_timer(id, opening);
    const std::string so_far =
        opening.is_connected ? opening.heard.text : "the server has not answered";
    for (const Limit& limit : over)
      limit.over(so_far);
    if (opening.limits.empty() && is_silent(opening)) take(id)->is_silent();
  }

  void connected(Id id, Opening& opening) {
    const int error = error_of(*opening.socket);
    if (error == ECONNRESET) return lose(id, error);
    if (error != 0) return fail(id, why_not(opening.to, error));
    const Instant now = SocketLoop::now();
    opening.is_connected = true;
    opening.silence.emplace(opening.begun, now, silence_);
    for (const Limit& limit : opening.limits)
      opening.silence->leave_time(now, limit.due);
    set_timer(id, opening);
    // Only changes count (EPOLLET): bytes that were peeked at stay in the socket.
    if (!loop_->listen_for(id, *opening.socket, EPOLLIN | EPOLLRDHUP | EPOLLET))
      fail(id, absl::StrCat("the socket cannot be watched: ", std::strerror(errno)));
  }

  // Whether the server is connected, and has sent nothing. Bytes may have come since this thread
  // last looked.
  static bool is_silent(const Opening& opening) {
    char byte = 0;
    return opening.silence.has_value() &&
           ::recv(*opening.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  void listen(Id id, Opening& opening) {
    std::array<char, kMostFirstBytes> bytes{};
    const auto count = ::recv(*opening.socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return lose(id, errno);
    if (count == 0) return fail(id, absl::StrCat("Socket closed", kBeforeSettings));
    const FirstBytes heard = judge_first_bytes({bytes.data(), static_cast<std::size_t>(count)});
    opening.heard = heard;
    opening.silence.reset();
    set_timer(id, opening);
    switch (heard.kind) {
      case FirstBytes::Kind::kSettings:
        if (has_hung_up(opening.socket))
          return fail(id, "the server has sent SETTINGS, and has closed the connection");
        return pass_on(id, heard.stream_limit);
      case FirstBytes::Kind::kOther:
        return fail(id, heard.text);
      case FirstBytes::Kind::kIncomplete:
        if (has_hung_up(opening.socket)) fail(id, absl::StrCat("Socket closed: ", heard.text));
        return;
    }
  }

  // The system reports an end that is there already, at once.
  void pass_on(Id id, std::optional<std::uint32_t> stream_limit) {
    Dial& dial = dials_.at(id);
    if (!loop_->listen_for(id, *dial.opening->socket, EPOLLRDHUP | EPOLLET))
      return fail(id, absl::StrCat("the socket cannot be watched: ", std::strerror(errno)));
    loop_->set_due(id, Instant::max());
    Descriptor socket = std::move(dial.opening->socket);
    dial.opening = nullptr;
    dial.listener->speaks(id, std::move(socket), stream_limit);
    // If the line has ended meanwhile, its destructor has posted the end.
    if (!dials_.at(id).has_line) forget(id);
  }

  // Precondition: `why` is not the dial's own text, because the dial is destroyed.
  void fail(Id id, const std::string& why) { take(id)->failed(why); }

  // The server ended the connection, before it spoke.
  void lose(Id id, int error) { fail(id, absl::StrCat(std::strerror(error), kBeforeSettings)); }

  // Removes the dial, and closes its socket unless it was passed on.
  std::shared_ptr<DialListener> take(Id id) {
    auto listener = std::move(dials_.at(id).listener);
    forget(id);
    return listener;
  }

  void set_timer(Id id, const Opening& opening) {
    Instant due = opening.silence ? opening.silence->at() : Instant::max();
    for (const Limit& limit : opening.limits)
      due = std::min(due, limit.due);
    loop_->set_due(id, due);
  }

  const std::chrono::milliseconds silence_;
  const Connect connect_;
  const std::unique_ptr<SocketLoop> loop_;
  std::atomic<Id> last_id_ = 0;
  std::map<Id, Dial> dials_;  ///< Used by the loop's thread alone.
};

absl::StatusOr<std::unique_ptr<SocketDialer>> SocketDialer::start(std::chrono::milliseconds silence,
                                                                  Connect connect) {
  auto loop = SocketLoop::make("sockets cannot be watched");
  if (!loop.ok()) return loop.status();
  return std::unique_ptr<SocketDialer>(
      new SocketDialer(std::make_shared<Loop>(*std::move(loop), silence, std::move(connect))));
}

SocketDialer::SocketDialer(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

SocketDialer::~SocketDialer() {
  stop();
}

void SocketDialer::stop() {
  loop_->stop();
}

// The orders hold a plain pointer to the loop: a loop that has stopped keeps orders that it never
// runs, and would else own itself.
SocketDialer::Id SocketDialer::dial(const Address& to,
                                    std::optional<std::chrono::milliseconds> user_timeout,
                                    std::shared_ptr<DialListener> listener) {
  const Id id = loop_->next_id();
  post([loop = loop_.get(), id, to, user_timeout, listener = std::move(listener)] {
    loop->begin(id, to, user_timeout, listener);
  });
  return id;
}

void SocketDialer::limit(Id dial, Instant due, std::function<void(absl::string_view so_far)> over) {
  post([loop = loop_.get(), dial, due, over = std::move(over)] { loop->limit(dial, {due, over}); });
}

void SocketDialer::hang_up(Id dial) {
  post([loop = loop_.get(), dial] { loop->forget(dial); });
}

void SocketDialer::post(std::function<void()> order) {
  loop_->post(std::move(order));
}

std::shared_ptr<SocketLine> SocketDialer::line(Id dial) {
  auto line = std::make_shared<SocketLine>(loop_, dial);
  loop_->set_line(dial, line);
  return line;
}

SocketLine::SocketLine(std::shared_ptr<SocketDialer::Loop> loop, SocketLoop::Id dial)
    : loop_(std::move(loop)), dial_(dial) {}

SocketLine::~SocketLine() {
  loop_->post([loop = loop_.get(), dial = dial_] { loop->end(dial); });
}

void SocketLine::lose() {
  record_end();
  loop_->post([loop = loop_.get(), dial = dial_] { loop->end(dial); });
}

}  // namespace signalbox::actors
