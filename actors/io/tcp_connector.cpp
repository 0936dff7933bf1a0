// SPDX-License-Identifier: Apache-2.0
#include "actors/io/tcp_connector.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "actors/io/end_mark.hpp"
#include "actors/io/socket_loop.hpp"
#include "actors/io/sockets.hpp"

namespace signalbox::actors {
namespace {

void set_keepalive(int socket, const TcpKeepalive& keepalive) {
  constexpr int kProbes = 3;
  const auto seconds = [](std::chrono::seconds time) {
    return static_cast<int>(std::clamp<std::int64_t>(time.count(), 1, 32767));
  };
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, seconds(keepalive.time));
  set(IPPROTO_TCP, TCP_KEEPINTVL, seconds(keepalive.timeout / kProbes));
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

// A connection that knows of its end before the policies do. The loop's thread ends it.
class TcpConnection final : public Connection {
 public:
  using Connection::Connection;

  bool takes_calls() const override { return !mark_.is_set(); }

  void lose() const { mark_.set(); }

  void let_go() const { mark_.let_go(); }

 private:
  mutable EndMark mark_;
};

// One attempt and its phase: it has not begun to connect, or waits because its address closed its
// last connection at once (kResting; P3 of tcp_connector.hpp), connects (kConnecting), or has a
// connection (kStanding). Only the loop's thread uses it, except give_up(), which ~Attempt calls on
// any thread.
struct Wish {
  enum class Phase { kResting, kConnecting, kStanding };

  Wish(Address to, Duration limit, Connector::Events listener)
      : address(std::move(to)), timeout(limit), events(std::move(listener)) {}

  // The mutex is held during a callback, so that ~Attempt waits for the callback (C2 of
  // connector.hpp). The mutex is recursive, because a callback may destroy its own attempt.
  template <typename Tell>
  void tell(const Tell& what) {
    const std::lock_guard lock(mutex);
    if (!is_given_up) what(events);
  }

  void give_up() {
    const std::lock_guard lock(mutex);
    is_given_up = true;
  }

  const Address address;
  const Duration timeout;
  std::recursive_mutex mutex;  ///< Guards the next two members.
  bool is_given_up = false;
  const Connector::Events events;

  // Only the loop's thread uses the members below.
  std::uint64_t id = 0;
  Phase phase = Phase::kResting;
  Descriptor socket;
  Instant established;  ///< When the current connection was established (P2).
  /// The connection that `connected` got; null before that.
  std::shared_ptr<const TcpConnection> connection;
};

using WishPtr = std::shared_ptr<Wish>;

}  // namespace

class TcpConnector::Loop final : public SocketLoop::Handler {
 public:
  using Id = SocketLoop::Id;

  Loop(TcpConnectorOptions options, std::unique_ptr<SocketLoop> loop)
      : options_(std::move(options)), loop_(std::move(loop)) {
    loop_->begin(*this);
  }

  void stop() { loop_->stop(); }

  void add(WishPtr wish) {
    loop_->post([this, wish = std::move(wish)] { take(wish); });
  }

  void drop(WishPtr wish) {
    wish->give_up();
    loop_->post([this, wish = std::move(wish)] { forget(wish); });
  }

 private:
  void take(const WishPtr& wish) {
    wish->id = ++last_id_;
    wishes_.emplace(wish->id, wish);
    std::erase_if(resting_,
                  [at = SocketLoop::now()](const auto& entry) { return entry.second <= at; });
    const auto resting = resting_.find(wish->address);
    if (resting == resting_.end()) return open(wish);
    wish->phase = Wish::Phase::kResting;
    loop_->set_due(wish->id, resting->second);
  }

  void open(const WishPtr& wish) {
    const SocketAddress to = parse_socket_address(wish->address.str());
    if (to.length == 0) return lose(wish, "it is no IP address with a port");
    wish->socket = make_socket(to);
    if (*wish->socket < 0) return lose(wish, std::strerror(errno));
    if (options_.keepalive) set_keepalive(*wish->socket, *options_.keepalive);
    wish->phase = Wish::Phase::kConnecting;
    loop_->set_due(wish->id,
                   SocketLoop::now() + std::min<Duration>(wish->timeout, std::chrono::hours(24)));
    if (!begin_connect(wish->socket, to) || !loop_->listen_for(wish->id, *wish->socket, EPOLLOUT))
      lose(wish, std::strerror(errno));
  }

  void happened(Id id) override {
    const auto found = wishes_.find(id);
    if (found == wishes_.end()) return;
    const WishPtr wish = found->second;
    const int error = error_of(*wish->socket);
    if (error != 0) return lose(wish, std::strerror(error));
    if (wish->phase == Wish::Phase::kConnecting) return stand(wish);
    if (SocketLoop::now() - wish->established < kStood) return lose(wish, "it was closed at once");
    open(wish);  // The server closed an idle connection: connects again (P2).
  }

  void stand(const WishPtr& wish) {
    loop_->set_due(wish->id, Instant::max());
    wish->phase = Wish::Phase::kStanding;
    wish->established = SocketLoop::now();
    if (!loop_->listen_for(wish->id, *wish->socket, EPOLLRDHUP))
      return lose(wish, std::strerror(errno));
    if (wish->connection != nullptr) return;
    const auto retire = [retire = options_.retire](const TcpConnection* connection) {
      connection->let_go();
      retire(std::unique_ptr<const Tracked>(connection));
    };
    wish->connection =
        std::shared_ptr<const TcpConnection>(new TcpConnection(wish->address), retire);
    wish->tell([&](const Events& events) { events.connected(wish->connection); });
  }

  // `wish` is passed by value, so that it stays valid when forget() erases the loop's own pointer.
  void lose(WishPtr wish, const std::string& why) {
    const bool stood = wish->phase == Wish::Phase::kStanding;
    if (stood && SocketLoop::now() - wish->established < kStood)
      resting_[wish->address] = wish->established + kStood;
    const bool was_connected = wish->connection != nullptr;
    if (was_connected) wish->connection->lose();
    const auto status = absl::UnavailableError(absl::StrCat(
        "connection to ", wish->address.str(), was_connected ? " was lost: " : " failed: ", why));
    forget(wish);
    wish->tell([&](const Events& events) {
      was_connected ? events.closed(status) : events.failed(status);
    });
  }

  void is_due(Id id) override {
    const WishPtr wish = wishes_.at(id);
    if (wish->phase == Wish::Phase::kResting) return open(wish);
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(wish->timeout);
    lose(wish, absl::StrCat("it was not made within ", limit.count(), " ms (connect_timeout)"));
  }

  void forget(WishPtr wish) {
    loop_->set_due(wish->id, Instant::max());
    wishes_.erase(wish->id);
    wish->socket = Descriptor();
    wish->connection = nullptr;
  }

  const TcpConnectorOptions options_;
  const std::unique_ptr<SocketLoop> loop_;

  // Only the loop's thread uses the members below.
  Id last_id_ = 0;
  std::map<Id, WishPtr> wishes_;
  /// Addresses that closed a connection at once, and when to connect to them again (P3 of
  /// tcp_connector.hpp).
  std::map<Address, Instant> resting_;
};

absl::StatusOr<std::unique_ptr<TcpConnector>> TcpConnector::start(TcpConnectorOptions options) {
  auto loop = SocketLoop::make("connections to endpoints cannot be watched");
  if (!loop.ok()) return loop.status();
  return std::unique_ptr<TcpConnector>(
      new TcpConnector(std::make_shared<Loop>(std::move(options), *std::move(loop))));
}

TcpConnector::~TcpConnector() {
  loop_->stop();
}

std::unique_ptr<Connector::Attempt> TcpConnector::connect(const Peer& peer,
                                                          Duration timeout,
                                                          Events events) {
  // The subchannel's attempt. It owns the loop together with the connector. If an attempt is
  // destroyed after its connector, against the precondition of connect(), the function that it
  // posts to the loop is stored and never run.
  class Place final : public Attempt {
   public:
    Place(std::shared_ptr<Loop> loop, WishPtr wish)
        : loop_(std::move(loop)), wish_(std::move(wish)) {}

    ~Place() override { loop_->drop(wish_); }

   private:
    const std::shared_ptr<Loop> loop_;
    const WishPtr wish_;
  };

  auto wish = std::make_shared<Wish>(peer.address, timeout, std::move(events));
  loop_->add(wish);
  return std::make_unique<Place>(loop_, std::move(wish));
}

}  // namespace signalbox::actors
