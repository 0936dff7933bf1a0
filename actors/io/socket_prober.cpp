// SPDX-License-Identifier: Apache-2.0
#include "actors/io/socket_prober.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "actors/io/sockets.hpp"
#include "messages/header_rules.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::actors {
namespace {

using Verdict = std::optional<ProbeAnswer>;  ///< nullopt: not yet.

Instant now() {
  return std::chrono::steady_clock::now();
}

Verdict passed() {
  return ProbeAnswer{ProbeOutcome::kPassed, "", false};
}

Verdict failed(std::string why, ProbeOutcome outcome = ProbeOutcome::kFailed) {
  return ProbeAnswer{outcome, std::move(why), false};
}

/// What is said, and what the answer means.
struct Script {
  Address to;
  Duration timeout{};
  std::string send;
  /// Of all that has been received so far.
  std::function<Verdict(absl::string_view received)> judge;
};

// --- TCP ------------------------------------------------------------------------

Verdict judge_tcp(const HealthCheck::Tcp& check, absl::string_view received) {
  std::size_t from = 0;
  for (const std::string& block : check.receive) {
    const auto found = received.find(block, from);
    if (found == absl::string_view::npos) return std::nullopt;
    from = found + block.size();
  }
  return passed();
}

// --- HTTP -----------------------------------------------------------------------

bool is_among(const std::vector<HealthCheck::Http::Statuses>& ranges, std::uint32_t status) {
  return std::ranges::any_of(
      ranges, [&](const auto& range) { return range.begin <= status && status < range.end; });
}

// "HTTP/1.1 200 OK"; nullopt: it is none.
std::optional<std::uint32_t> status_in(absl::string_view line) {
  constexpr absl::string_view kBefore = "HTTP/1.x ";
  constexpr std::size_t kEnd = kBefore.size() + 3;
  std::uint32_t status = 0;
  const bool is_status_line = line.size() >= kEnd && line.substr(0, 7) == kBefore.substr(0, 7) &&
                              line[8] == ' ' &&
                              absl::c_all_of(line.substr(kBefore.size(), 3), absl::ascii_isdigit) &&
                              (line.size() == kEnd || line[kEnd] == ' ') &&
                              absl::SimpleAtoi(line.substr(kBefore.size(), 3), &status);
  return is_status_line ? std::optional(status) : std::nullopt;
}

Verdict judge_http(const HealthCheck::Http& check, absl::string_view received) {
  while (true) {
    const auto end = received.find("\r\n");
    if (end == absl::string_view::npos) return std::nullopt;
    const auto status = status_in(received.substr(0, end));
    if (!status.has_value()) return failed("the answer is not HTTP/1.1");
    if (is_among(check.expected, *status)) return passed();
    const bool is_interim = *status < 200 && *status != 101;
    if (!is_interim) {
      return failed(
          absl::StrCat("the answer is ", *status),
          is_among(check.retriable, *status) ? ProbeOutcome::kFailed : ProbeOutcome::kRefused);
    }
    const auto head = received.find("\r\n\r\n");
    if (head == absl::string_view::npos) return std::nullopt;
    received.remove_prefix(head + 4);
  }
}

std::string http_request(const HealthCheck::Http& check, const HealthProber::Target& target) {
  std::string host = check.host;
  // A cluster may have a name that is none for HTTP.
  if (host.empty() && is_header_value("host", target.cluster.str())) host = target.cluster.str();
  if (host.empty()) host = target.peer.address.str();
  return absl::StrCat("GET ",
                      check.path,
                      " HTTP/1.1\r\nhost: ",
                      host,
                      "\r\nuser-agent: signalbox-health-check\r\nconnection: close\r\n\r\n");
}

Script script_of(const HealthProber::Target& target, const HealthCheck& check) {
  Script script{target.peer.address,
                std::min<Duration>(check.timeout, std::chrono::hours(24)),
                "",
                [](absl::string_view) { return passed(); }};
  if (const auto* tcp = std::get_if<HealthCheck::Tcp>(&check.probe)) {
    script.send = tcp->send;
    script.judge = [check = *tcp](absl::string_view received) {
      return judge_tcp(check, received);
    };
  } else if (const auto* http = std::get_if<HealthCheck::Http>(&check.probe)) {
    script.send = http_request(*http, target);
    script.judge = [check = *http](absl::string_view received) {
      return judge_http(check, received);
    };
  }
  return script;
}

bool is_our_own_lack(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL;
}

/// One probe, from its connection to its end.
struct Talk {
  Script script;
  HealthProber::Answer answer;
  Descriptor socket{};
  Instant due{};
  bool is_connected = false;
  std::size_t sent = 0;
  std::string received = {};
};

}  // namespace

class SocketProber::Loop {
 public:
  Loop(Descriptor epoll, Descriptor bell) : epoll_(std::move(epoll)), bell_(std::move(bell)) {}

  /// From here on there is a thread.
  void begin() {
    std::call_once(begun_, [this] { thread_ = std::thread([this] { run(); }); });
  }

  std::uint64_t next_id() { return ++last_id_; }

  void stop() {
    post([this] { is_stopping_ = true; });
    if (thread_.joinable()) thread_.join();
  }

  void open(std::uint64_t id, Script script, HealthProber::Answer answer) {
    post([this, id, script = std::move(script), answer = std::move(answer)]() mutable {
      auto& talk = talks_[id];
      talk = Talk{std::move(script), std::move(answer)};
      connect(id, talk);
    });
  }

  void give_up(std::uint64_t id) {
    post([this, id] { forget(id); });
  }

 private:
  void post(std::function<void()> order) {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(*bell_, &one, sizeof(one));
  }

  void run() {
    while (obey()) {
      std::array<epoll_event, 64> events{};
      const int count =
          ::epoll_wait(*epoll_, events.data(), static_cast<int>(events.size()), patience_ms());
      for (int i = 0; i < count; ++i)
        happened(events[static_cast<std::size_t>(i)].data.u64);
      while (!due_.empty() && due_.begin()->first <= now())
        end(due_.begin()->second, *failed("no answer in time"));
    }
  }

  // False: it is time to go.
  bool obey() {
    std::vector<std::function<void()>> orders;
    {
      const std::lock_guard lock(mutex_);
      std::uint64_t rings = 0;
      [[maybe_unused]] const auto read = ::read(*bell_, &rings, sizeof(rings));
      orders.swap(orders_);
    }
    for (const auto& order : orders)
      order();
    return !is_stopping_;
  }

  int patience_ms() const {
    if (due_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.begin()->first - now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }

  void connect(std::uint64_t id, Talk& talk) {
    talk.due = now() + talk.script.timeout;
    due_.emplace(talk.due, id);
    const SocketAddress to = parse_socket_address(talk.script.to.str());
    if (to.length == 0) return end(id, *failed("its address is no IP address with a port"));
    talk.socket =
        Descriptor(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (*talk.socket < 0) return lose(id, errno);
    const auto* const name = reinterpret_cast<const sockaddr*>(&to.storage);
    if (::connect(*talk.socket, name, to.length) != 0 && errno != EINPROGRESS)
      return lose(id, errno);
    if (!listen_for(id, EPOLL_CTL_ADD, EPOLLOUT)) lose(id, errno);
  }

  bool listen_for(std::uint64_t id, int how, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.u64 = id;
    return ::epoll_ctl(*epoll_, how, *talks_.at(id).socket, &event) == 0;
  }

  void happened(std::uint64_t id) {
    const auto found = talks_.find(id);
    if (found == talks_.end()) return;  // The bell, or over.
    Talk& talk = found->second;
    if (!talk.is_connected) {
      const int error = error_of(*talk.socket);
      if (error != 0) return lose(id, error);
      talk.is_connected = true;
    }
    if (talk.sent < talk.script.send.size() || talk.received.empty()) {
      if (!send(id, talk)) return;
    }
    receive(id, talk);
  }

  // Whether there is more to do now.
  bool send(std::uint64_t id, Talk& talk) {
    while (talk.sent < talk.script.send.size()) {
      const auto count = ::send(*talk.socket,
                                talk.script.send.data() + talk.sent,
                                talk.script.send.size() - talk.sent,
                                MSG_NOSIGNAL);
      if (count < 0) {
        if (errno != EAGAIN && errno != EINTR) lose(id, errno);
        return false;
      }
      talk.sent += static_cast<std::size_t>(count);
    }
    if (auto verdict = talk.script.judge("")) {
      end(id, *std::move(verdict));
      return false;
    }
    if (listen_for(id, EPOLL_CTL_MOD, EPOLLIN)) return true;
    lose(id, errno);
    return false;
  }

  void receive(std::uint64_t id, Talk& talk) {
    std::array<char, 4096> bytes{};
    const auto count = ::recv(*talk.socket, bytes.data(), bytes.size(), 0);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) lose(id, errno);
      return;
    }
    if (count == 0) return end(id, *failed("the connection was closed without the answer"));
    talk.received.append(bytes.data(), static_cast<std::size_t>(count));
    if (auto verdict = talk.script.judge(talk.received)) return end(id, *std::move(verdict));
    if (talk.received.size() > kMostReceived)
      end(id, *failed(absl::StrCat("the answer is not in its first ", kMostReceived, " bytes")));
  }

  void lose(std::uint64_t id, int error) {
    end(id,
        *failed(std::strerror(error),
                is_our_own_lack(error) ? ProbeOutcome::kUndone : ProbeOutcome::kFailed));
  }

  void end(std::uint64_t id, ProbeAnswer answer) {
    const auto tell = std::move(talks_.at(id).answer);
    forget(id);
    tell(std::move(answer));
  }

  void forget(std::uint64_t id) {
    const auto found = talks_.find(id);
    if (found == talks_.end()) return;
    due_.erase({found->second.due, id});
    talks_.erase(found);  // With its socket goes its place in epoll_.
  }

  const Descriptor epoll_;
  const Descriptor bell_;
  std::once_flag begun_;
  std::atomic<std::uint64_t> last_id_ = 0;  ///< 0: the bell's.

  std::mutex mutex_;  ///< Guards the orders.
  std::vector<std::function<void()>> orders_;

  // The thread's.
  bool is_stopping_ = false;
  std::map<std::uint64_t, Talk> talks_;
  std::set<std::pair<Instant, std::uint64_t>> due_;

  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<SocketProber>> SocketProber::make() {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  if (*epoll < 0 || *bell < 0 || ::epoll_ctl(*epoll, EPOLL_CTL_ADD, *bell, &event) != 0) {
    return absl::UnavailableError(
        absl::StrCat("endpoints cannot be probed: ", std::strerror(errno)));
  }
  return std::unique_ptr<SocketProber>(
      new SocketProber(std::make_shared<Loop>(std::move(epoll), std::move(bell))));
}

SocketProber::~SocketProber() {
  loop_->stop();
}

std::unique_ptr<HealthProber::Probe> SocketProber::prepare(const Target& target,
                                                           const HealthCheck& check) {
  // It may outlive the prober by a moment.
  class SocketProbe final : public Probe {
   public:
    SocketProbe(std::shared_ptr<Loop> loop, Script script)
        : loop_(std::move(loop)), script_(std::move(script)) {}

    ~SocketProbe() override { loop_->give_up(id_); }

    void begin(Answer answer) override {
      id_ = loop_->next_id();
      loop_->open(id_, script_, std::move(answer));
    }

   private:
    const std::shared_ptr<Loop> loop_;
    const Script script_;
    std::uint64_t id_ = 0;
  };

  loop_->begin();
  return std::make_unique<SocketProbe>(loop_, script_of(target, check));
}

}  // namespace signalbox::actors
