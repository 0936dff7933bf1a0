// SPDX-License-Identifier: Apache-2.0
#include "actors/io/tcp_connector.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/io/sockets.hpp"

namespace signalbox::actors {
namespace {

Instant now() {
  return std::chrono::steady_clock::now();
}

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

// What one attempt wants, and how far it is. Its caller knows only `give_up()`.
struct Wish {
  enum class Phase { kResting, kConnecting, kStanding };

  Wish(Address to, Duration limit, Connector::Events told)
      : address(std::move(to)), timeout(limit), events(std::move(told)) {}

  // The mutex is held during a callback, so that whoever gives up waits for it (C2); it is
  // recursive for those who do so inside of one.
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
  std::recursive_mutex mutex;  ///< Guards the next two.
  bool is_given_up = false;
  const Connector::Events events;

  // The thread's.
  std::uint64_t id = 0;
  Phase phase = Phase::kResting;
  Descriptor socket;
  Instant begun;             ///< Standing: since when.
  Instant due;               ///< When to begin, or to give it up.
  ConnectionPtr connection;  ///< Once it has been told.
};

using WishPtr = std::shared_ptr<Wish>;

}  // namespace

class TcpConnector::Loop {
 public:
  Loop(TcpConnectorOptions options, Descriptor epoll, Descriptor bell)
      : options_(std::move(options)),
        epoll_(std::move(epoll)),
        bell_(std::move(bell)),
        thread_([this] { run(); }) {}

  void stop() {
    order([this] { is_stopping_ = true; });
    thread_.join();
  }

  void add(WishPtr wish) {
    order([&] { fresh_.push_back(std::move(wish)); });
  }

  void drop(WishPtr wish) {
    wish->give_up();
    order([&] { unwanted_.push_back(std::move(wish)); });
  }

 private:
  static constexpr std::uint64_t kBell = 0;  ///< No wish has this id.

  template <typename Leave>
  void order(const Leave& leave) {
    const std::lock_guard lock(mutex_);
    leave();
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(*bell_, &one, sizeof(one));
  }

  void run() {
    while (obey()) {
      std::array<epoll_event, 64> events{};
      const int count =
          ::epoll_wait(*epoll_, events.data(), static_cast<int>(events.size()), patience_ms());
      for (int i = 0; i < count; ++i) {
        const auto found = wishes_.find(events[static_cast<std::size_t>(i)].data.u64);
        if (found != wishes_.end()) happened(found->second);
      }
      while (!due_.empty() && due_.begin()->first <= now())
        time_is_over(wishes_.at(due_.begin()->second));
    }
  }

  // False: it is time to go.
  bool obey() {
    std::vector<WishPtr> fresh, unwanted;
    {
      const std::lock_guard lock(mutex_);
      std::uint64_t rings = 0;
      [[maybe_unused]] const auto read = ::read(*bell_, &rings, sizeof(rings));
      if (is_stopping_) return false;
      fresh.swap(fresh_);
      unwanted.swap(unwanted_);
    }
    for (const WishPtr& wish : fresh)
      take(wish);
    for (const WishPtr& wish : unwanted)
      forget(wish);
    return true;
  }

  int patience_ms() const {
    if (due_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.begin()->first - now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }

  void take(const WishPtr& wish) {
    wish->id = ++last_id_;
    wishes_.emplace(wish->id, wish);
    std::erase_if(resting_, [at = now()](const auto& entry) { return entry.second <= at; });
    const auto resting = resting_.find(wish->address);
    if (resting == resting_.end()) return open(wish);
    wish->phase = Wish::Phase::kResting;
    set_due(wish, resting->second);
  }

  void open(const WishPtr& wish) {
    const SocketAddress to = parse_socket_address(wish->address.str());
    if (to.length == 0) return lose(wish, "it is no IP address with a port");
    wish->socket =
        Descriptor(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (*wish->socket < 0) return lose(wish, std::strerror(errno));
    if (options_.keepalive) set_keepalive(*wish->socket, *options_.keepalive);
    wish->phase = Wish::Phase::kConnecting;
    set_due(wish, now() + std::min<Duration>(wish->timeout, std::chrono::hours(24)));
    const auto* const name = reinterpret_cast<const sockaddr*>(&to.storage);
    if (::connect(*wish->socket, name, to.length) != 0 && errno != EINPROGRESS)
      return lose(wish, std::strerror(errno));
    if (!listen_for(wish, EPOLL_CTL_ADD, EPOLLOUT)) lose(wish, std::strerror(errno));
  }

  bool listen_for(const WishPtr& wish, int how, std::uint32_t what) const {
    epoll_event event{};
    event.events = what;
    event.data.u64 = wish->id;
    return ::epoll_ctl(*epoll_, how, *wish->socket, &event) == 0;
  }

  void happened(const WishPtr& wish) {
    const int error = error_of(*wish->socket);
    if (error != 0) return lose(wish, std::strerror(error));
    if (wish->phase == Wish::Phase::kConnecting) return stand(wish);
    if (now() - wish->begun < kStood) return lose(wish, "it was closed at once");
    open(wish);  // P2.
  }

  void stand(const WishPtr& wish) {
    set_due(wish, Instant::max());
    wish->phase = Wish::Phase::kStanding;
    wish->begun = now();
    if (!listen_for(wish, EPOLL_CTL_MOD, EPOLLRDHUP)) return lose(wish, std::strerror(errno));
    if (wish->connection != nullptr) return;
    const auto retire = [retire = options_.retire](const Connection* connection) {
      retire(std::unique_ptr<const Tracked>(connection));
    };
    wish->connection = ConnectionPtr(new Connection(wish->address), retire);
    wish->tell([&](const Events& events) { events.connected(wish->connection); });
  }

  // A wish of its own: the caller's may be the one that is forgotten here.
  void lose(WishPtr wish, const std::string& why) {
    const bool stood = wish->phase == Wish::Phase::kStanding;
    if (stood && now() - wish->begun < kStood) resting_[wish->address] = wish->begun + kStood;
    const bool was_told = wish->connection != nullptr;
    const auto status = absl::UnavailableError(absl::StrCat(
        "connection to ", wish->address.str(), was_told ? " was lost: " : " failed: ", why));
    forget(wish);
    wish->tell(
        [&](const Events& events) { was_told ? events.closed(status) : events.failed(status); });
  }

  void time_is_over(const WishPtr& wish) {
    if (wish->phase == Wish::Phase::kResting) return open(wish);
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(wish->timeout);
    lose(wish, absl::StrCat("it was not made within ", limit.count(), " ms (connect_timeout)"));
  }

  void forget(WishPtr wish) {
    set_due(wish, Instant::max());
    wishes_.erase(wish->id);
    wish->socket = Descriptor();  // With it goes its place in epoll_.
    wish->connection = nullptr;
  }

  // Instant::max(): never.
  void set_due(const WishPtr& wish, Instant due) {
    due_.erase({wish->due, wish->id});
    wish->due = due;
    if (due != Instant::max()) due_.emplace(due, wish->id);
  }

  const TcpConnectorOptions options_;
  const Descriptor epoll_;
  const Descriptor bell_;

  std::mutex mutex_;  ///< Guards the orders.
  std::vector<WishPtr> fresh_;
  std::vector<WishPtr> unwanted_;
  bool is_stopping_ = false;

  // The thread's.
  std::uint64_t last_id_ = kBell;
  std::map<std::uint64_t, WishPtr> wishes_;
  std::set<std::pair<Instant, std::uint64_t>> due_;
  std::map<Address, Instant> resting_;  ///< Until when (P3).

  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<TcpConnector>> TcpConnector::start(TcpConnectorOptions options) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  if (*epoll < 0 || *bell < 0 || ::epoll_ctl(*epoll, EPOLL_CTL_ADD, *bell, &event) != 0) {
    return absl::UnavailableError(
        absl::StrCat("connections to endpoints cannot be watched: ", std::strerror(errno)));
  }
  return std::unique_ptr<TcpConnector>(new TcpConnector(
      std::make_shared<Loop>(std::move(options), std::move(epoll), std::move(bell))));
}

TcpConnector::~TcpConnector() {
  loop_->stop();
}

std::unique_ptr<Connector::Attempt> TcpConnector::connect(const Peer& peer,
                                                          Duration timeout,
                                                          Events events) {
  // What the subchannel holds. It may outlive the connector by a moment.
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
