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
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <sys/epoll.h>
#include <sys/socket.h>

#include "actors/io/socket_loop.hpp"
#include "actors/io/sockets.hpp"
#include "messages/header_rules.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::actors {
namespace {

/// The probe's answer; nullopt: the bytes so far do not decide it.
using Verdict = std::optional<ProbeAnswer>;

Verdict passed() {
  return ProbeAnswer{ProbeOutcome::kPassed, "", false};
}

Verdict failed(std::string why, ProbeOutcome outcome = ProbeOutcome::kFailed) {
  return ProbeAnswer{outcome, std::move(why), false};
}

/// The course of a probe: the address, the bytes to send, and the function that judges the answer.
struct Script {
  Address to;
  Duration timeout{};
  std::string send;
  /// Judges all bytes received so far.
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

// The status in a line such as "HTTP/1.1 200 OK"; nullopt: the line is no status line.
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
  // The cluster's name is used only if it can be the value of a header: printable ASCII.
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

/// The state of one probe.
struct Talk {
  Script script;
  HealthProber::Answer answer;
  Descriptor socket{};
  bool is_connected = false;
  std::size_t sent = 0;
  std::string received = {};
};

}  // namespace

class SocketProber::Loop final : public SocketLoop::Handler {
 public:
  using Id = SocketLoop::Id;

  explicit Loop(std::unique_ptr<SocketLoop> loop) : loop_(std::move(loop)) {}

  void begin() { loop_->begin(*this); }

  void stop() { loop_->stop(); }

  Id next_id() { return ++last_id_; }

  void open(Id id, Script script, HealthProber::Answer answer) {
    loop_->post([this, id, script = std::move(script), answer = std::move(answer)]() mutable {
      auto& talk = talks_[id];
      talk = Talk{std::move(script), std::move(answer)};
      connect(id, talk);
    });
  }

  void give_up(Id id) {
    loop_->post([this, id] { forget(id); });
  }

 private:
  void connect(Id id, Talk& talk) {
    loop_->set_due(id, SocketLoop::now() + talk.script.timeout);
    const SocketAddress to = parse_socket_address(talk.script.to.str());
    if (to.length == 0) return end(id, *failed("its address is no IP address with a port"));
    talk.socket = make_socket(to);
    if (*talk.socket < 0 || !begin_connect(talk.socket, to)) return lose(id, errno);
    if (!loop_->listen_for(id, *talk.socket, EPOLLOUT)) lose(id, errno);
  }

  void happened(Id id) override {
    const auto found = talks_.find(id);
    if (found == talks_.end()) return;
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

  void is_due(Id id) override { end(id, *failed("no answer in time")); }

  // Sends the rest of the script. Returns whether to receive now.
  bool send(Id id, Talk& talk) {
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
    if (loop_->listen_for(id, *talk.socket, EPOLLIN)) return true;
    lose(id, errno);
    return false;
  }

  void receive(Id id, Talk& talk) {
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
      end(id,
          *failed(absl::StrCat("the first ", kMostReceived, " bytes have no end of the answer")));
  }

  void lose(Id id, int error) {
    end(id,
        *failed(std::strerror(error),
                is_our_own_lack(error) ? ProbeOutcome::kUndone : ProbeOutcome::kFailed));
  }

  void end(Id id, ProbeAnswer answer) {
    const auto tell = std::move(talks_.at(id).answer);
    forget(id);
    tell(std::move(answer));
  }

  void forget(Id id) {
    loop_->set_due(id, Instant::max());
    talks_.erase(id);
  }

  const std::unique_ptr<SocketLoop> loop_;
  std::atomic<Id> last_id_ = 0;
  std::map<Id, Talk> talks_;  ///< Used by the loop's thread alone.
};

absl::StatusOr<std::unique_ptr<SocketProber>> SocketProber::make() {
  auto loop = SocketLoop::make("endpoints cannot be probed");
  if (!loop.ok()) return loop.status();
  return std::unique_ptr<SocketProber>(new SocketProber(std::make_shared<Loop>(*std::move(loop))));
}

SocketProber::~SocketProber() {
  loop_->stop();
}

std::unique_ptr<HealthProber::Probe> SocketProber::prepare(const Target& target,
                                                           const HealthCheck& check) {
  // Shares the loop with the prober. If a probe is destroyed after its prober, against the
  // precondition of prepare(), its last order is stored and never run.
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
