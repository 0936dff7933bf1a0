// SPDX-License-Identifier: Apache-2.0
//
// The dialer alone: the test gets the sockets in place of gRPC.
#include "actors/io/socket_dialer.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/io/grpc_poller.hpp"
#include "actors/io/socket_channels.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/happened.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using actors::Descriptor;
using actors::SilenceDeadline;
using actors::SocketDialer;
using actors::SocketLine;
using actors::SocketLoop;

// The events of a dial, as texts.
class Listener final : public actors::DialListener {
 public:
  void speaks(SocketLoop::Id dial,
              Descriptor passed_on,
              std::optional<std::uint32_t> /*stream_limit*/) override {
    if (amid_hand_over) amid_hand_over(passed_on);
    socket = std::move(passed_on);
    line = dialer->line(dial);
    events.add("speaks");
  }

  void is_silent() override { events.add("is silent"); }

  void failed(const std::string& why) override { events.add(why); }

  void ended(bool has_error) override { events.add(has_error ? "ended by an error" : "ended"); }

  SocketDialer* dialer = nullptr;
  std::function<void(const Descriptor& socket)> amid_hand_over;
  Happened<std::string> events;
  Descriptor socket;
  std::shared_ptr<SocketLine> line;
};

// No server of these tests counts as silent, however slow the machine is.
std::unique_ptr<SocketDialer> started(SocketDialer::Connect connect = actors::begin_connect) {
  auto dialer = SocketDialer::start(60s, std::move(connect));
  REQUIRE(dialer.ok());
  return *std::move(dialer);
}

// Connects, and waits for the first event of the server. So the event is there before the dialer
// looks.
SocketDialer::Connect connect_until(short event) {
  return [event](const Descriptor& socket, const actors::SocketAddress& to) {
    pollfd state{*socket, event, 0};
    return actors::begin_connect(socket, to) && ::poll(&state, 1, 60'000) == 1;
  };
}

// A server's side of a connection that the dialer has passed on.
class Taken {
 public:
  explicit Taken(int socket) : socket_(socket) {}

  void speak() const {
    const std::string settings = http2_settings();
    REQUIRE(::send(*socket_, settings.data(), settings.size(), MSG_NOSIGNAL) > 0);
  }

  void close() { Descriptor(std::exchange(socket_, Descriptor())); }

  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(*socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close();
  }

 private:
  Descriptor socket_;
};

// A connection that the dialer has passed on.
struct PassedOn {
  PassedOn() {
    server.listen();
    listener->dialer = dialer.get();
    dialer->dial(server.address(), 1234ms, listener);
    taken.emplace(server.take_one());
    taken->speak();
    REQUIRE(listener->events.next() == "speaks");
  }

  MuteSocket server;
  const std::unique_ptr<SocketDialer> dialer = started();
  const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  std::optional<Taken> taken;
};

// The epoll sets of this process that watch the socket, by any descriptor, even a closed one.
std::vector<int> epoll_sets_with(const Descriptor& socket) {
  struct stat file{};
  REQUIRE(::fstat(*socket, &file) == 0);
  const std::string inode = absl::StrCat(" ino:", absl::Hex(file.st_ino), " ");
  std::vector<int> sets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) {
      if (absl::StartsWith(line, "tfd:") && absl::StrContains(line, inode))
        sets.push_back(std::stoi(entry.path().filename()));
    }
  }
  return sets;
}

// Waits until the end of the connection has arrived.
void wait_for_end(const Descriptor& socket) {
  pollfd state{*socket, POLLHUP, 0};
  REQUIRE(::poll(&state, 1, 10'000) == 1);
}

}  // namespace

TEST_CASE("socket_dialer: what the system lacks is the reason of the failure",
          "[io][connector][limits]") {
  struct Row {
    int error;
    const char* text;
    const char* address = "127.0.0.1:1";
  };

  const auto row = GENERATE(values<Row>({
      {ENOBUFS, "Failed to connect to remote host: No buffer space available"},
      {EADDRNOTAVAIL, "Failed to connect to remote host: Cannot assign requested address"},
      {ENFILE, "Failed to connect to remote host: Too many open files in system"},
      {EAGAIN, "Failed to connect to remote host: Resource temporarily unavailable"},
      {EAGAIN,
       "Failed to connect to remote host: Resource temporarily unavailable: the server's backlog "
       "is full",
       "unix:/missing"},
  }));
  const auto dialer = started([&row](const Descriptor&, const actors::SocketAddress&) {
    errno = row.error;
    return false;
  });
  const auto listener = std::make_shared<Listener>();
  listener->dialer = dialer.get();
  dialer->dial(Address(row.address), std::nullopt, listener);
  CHECK(listener->events.next() == row.text);
  dialer->stop();
  CHECK(listener->events.is_empty());
}

TEST_CASE("socket_dialer: sockets have the options of gRPC's own", "[io][connector]") {
  const PassedOn made;
  const auto option = [&made](int level, int name) {
    int value = -1;
    socklen_t length = sizeof(value);
    REQUIRE(::getsockopt(*made.listener->socket, level, name, &value, &length) == 0);
    return value;
  };
  CHECK(option(SOL_SOCKET, SO_REUSEADDR) != 0);
  CHECK(option(IPPROTO_TCP, TCP_NODELAY) != 0);
  CHECK(option(IPPROTO_TCP, TCP_USER_TIMEOUT) == 1234);
}

TEST_CASE("socket_dialer: when a server that says nothing counts as silent", "[io][connector]") {
  struct Limit {
    Duration set;
    Duration due;
  };

  struct Row {
    const char* when;
    Duration handshake;
    std::vector<Limit> limits;
    Duration silent;  ///< As the times of the limits: since the server was connected.
  };

  const auto row = GENERATE(values<Row>({
      {"after the silence", 1ms, {}, 100ms},
      {"after three handshakes, if they take longer", 50ms, {}, 150ms},
      {"after half of the time until a limit", 1ms, {{0ms, 120ms}}, 60ms},
      {"after half of the time that a later limit leaves", 1ms, {{40ms, 80ms}}, 60ms},
      {"by the first of several limits", 1ms, {{0ms, 150ms}, {0ms, 120ms}, {0ms, 1h}}, 60ms},
      {"never before three handshakes", 30ms, {{0ms, 100ms}, {0ms, 120ms}}, 90ms},
  }));
  CAPTURE(row.when);
  const Instant connected{1h};
  SilenceDeadline deadline(connected - row.handshake, connected, 100ms);
  for (const Limit& limit : row.limits)
    deadline.leave_time(connected + limit.set, connected + limit.due);
  CHECK(deadline.at() - connected == row.silent);
}

// The dialer's silence is a minute.
TEST_CASE("socket_dialer: a server is silent after half of the time that is left",
          "[io][connector]") {
  MuteSocket server;
  server.listen();
  const auto dialer = started();
  const auto listener = std::make_shared<Listener>();
  const auto limit_is_over = [listener](absl::string_view) {
    listener->events.add("time is over");
  };
  std::optional<Taken> taken;
  SECTION("of the limit that was set first") {
    const auto dial = dialer->dial(server.address(), std::nullopt, listener);
    dialer->limit(dial, SocketLoop::now() + 400ms, limit_is_over);
  }
  SECTION("of a limit that is set when the server is connected") {
    const auto dial = dialer->dial(server.address(), std::nullopt, listener);
    taken.emplace(server.take_one());
    dialer->limit(dial, SocketLoop::now() + 1h, limit_is_over);
    dialer->limit(dial, SocketLoop::now() + 400ms, limit_is_over);
  }
  CHECK(listener->events.next() == "is silent");
  dialer->stop();
  CHECK(listener->events.is_empty());
}

TEST_CASE("socket_dialer: a slow server is silent when its time is over", "[io][connector]") {
  MuteSocket server;
  server.listen();
  // Three times the handshake is more than the time that is left.
  const auto dialer = started([](const Descriptor& socket, const actors::SocketAddress& to) {
    return actors::begin_connect(socket, to) && ::poll(nullptr, 0, 200) == 0;
  });
  const auto listener = std::make_shared<Listener>();
  const auto dial = dialer->dial(server.address(), std::nullopt, listener);
  for (const bool is_last : {false, true}) {
    dialer->limit(dial, SocketLoop::now() + 300ms, [=, &dialer](absl::string_view so_far) {
      listener->events.add(std::string(so_far));
      if (is_last) dialer->hang_up(dial);
    });
  }
  CHECK(listener->events.next() == "the server has sent nothing");
  CHECK(listener->events.next() == "the server has sent nothing");
  CHECK(listener->events.next() == "is silent");
  dialer->stop();
  CHECK(listener->events.is_empty());
}

TEST_CASE("socket_dialer: a server that speaks and closes at once has failed", "[io][connector]") {
  const TalkingSocket server(http2_settings());
  const auto dialer = started(connect_until(POLLRDHUP));
  const auto listener = std::make_shared<Listener>();
  listener->dialer = dialer.get();
  dialer->dial(Address(server.address()), std::nullopt, listener);
  CHECK(listener->events.next() == "the server has sent SETTINGS, and has closed the connection");
  dialer->stop();
  CHECK(listener->events.is_empty());
}

TEST_CASE("socket_dialer: a server that speaks when its time is over is not silent",
          "[io][connector]") {
  const TalkingSocket server({{"", http2_settings()}, {"what no client says", ""}});
  const auto dialer = started(connect_until(POLLIN));
  const auto listener = std::make_shared<Listener>();
  listener->dialer = dialer.get();
  // The dialer's thread obeys both orders before it looks at the socket.
  dialer->post([&] {
    const auto dial = dialer->dial(Address(server.address()), std::nullopt, listener);
    dialer->limit(dial, SocketLoop::now(), [](absl::string_view) {});
  });
  CHECK(listener->events.next() == "speaks");
  dialer->stop();
  CHECK(listener->events.is_empty());
}

TEST_CASE("socket_dialer: the end of a connection tells an error from the server's close",
          "[io][connector]") {
  const bool is_reset = GENERATE(false, true);
  CAPTURE(is_reset);
  PassedOn made;
  if (is_reset) {
    made.taken->reset();
  } else {
    made.taken->close();
  }
  CHECK(made.listener->events.next() == (is_reset ? "ended by an error" : "ended"));
  CHECK(made.listener->line->has_ended());
}

TEST_CASE("socket_dialer: an ended connection that calls keep open does not wake the dialer again",
          "[io][connector]") {
  PassedOn made;
  const auto sets = epoll_sets_with(made.listener->socket);
  REQUIRE(sets.size() == 1);
  made.taken->close();
  REQUIRE(made.listener->events.next() == "ended");
  CHECK(eventually([&sets] {
    pollfd events{sets.front(), POLLIN, 0};
    return ::poll(&events, 1, 0) == 0;
  }));
}

TEST_CASE("socket_dialer: a dial that is given up is not watched, though a child has its socket",
          "[io][connector]") {
  MuteSocket server;
  server.listen();
  Happened<Descriptor> copies;
  const auto dialer = started([&copies](const Descriptor& socket, const actors::SocketAddress& to) {
    copies.add(Descriptor(::dup(*socket)));  // As a forked child has it.
    return actors::begin_connect(socket, to);
  });
  const auto dial = dialer->dial(server.address(), std::nullopt, std::make_shared<Listener>());
  const Descriptor copy = copies.next();
  CHECK(eventually([&copy] { return epoll_sets_with(copy).size() == 1; }));
  dialer->hang_up(dial);
  CHECK(eventually([&copy] { return epoll_sets_with(copy).empty(); }));
}

TEST_CASE("socket_dialer: a reset amid the hand-over is the end of the connection",
          "[io][connector]") {
  const actors::GrpcPoller::Interest interest;
  grpc::ChannelArguments arguments;
  const auto channels = actors::SocketChannels::make(arguments);
  REQUIRE(channels.ok());
  MuteSocket server;
  server.listen();
  const auto dialer = started();
  const auto listener = std::make_shared<Listener>();
  Happened<int> accepted;
  listener->dialer = dialer.get();
  listener->amid_hand_over = [&accepted](const Descriptor& socket) {
    Taken(accepted.next()).reset();
    wait_for_end(socket);
  };
  dialer->dial(server.address(), std::nullopt, listener);
  const int taken = server.take_one();
  const std::string settings = http2_settings();
  accepted.add(taken);
  REQUIRE(::send(taken, settings.data(), settings.size(), MSG_NOSIGNAL) > 0);
  REQUIRE(listener->events.next() == "speaks");
  const auto channel = channels->channel(std::move(listener->socket), server.address());
  REQUIRE(channel != nullptr);
  CHECK(absl::StartsWith(listener->events.next(), "ended"));
  grpc::ClientContext context;
  EchoReply reply;
  context.set_deadline(std::chrono::system_clock::now() + 10s);
  CHECK(Echo::NewStub(channel)->Unary(&context, EchoRequest(), &reply).error_code() ==
        grpc::StatusCode::UNAVAILABLE);
  dialer->stop();
}

}  // namespace signalbox::test
