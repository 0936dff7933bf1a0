// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_prober.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include <sys/epoll.h>
#include <sys/socket.h>

#include "actors/io/certificate_handshake.hpp"
#include "actors/io/certificate_reason.hpp"
#include "actors/io/socket_loop.hpp"
#include "actors/io/sockets.hpp"

namespace signalbox::actors {
namespace {

using Answer = std::function<void(const std::string& reason)>;

// Questions with equal keys share one probe: address, server name, name and hash of the roots.
using Key = std::tuple<std::string, std::string, std::string, std::size_t>;

Key key_of(const CertificateQuestion& question) {
  return {question.address,
          question.server_name,
          question.roots,
          std::hash<std::string>()(question.texts->roots)};
}

// The result of a probe, or the questions that wait for it.
struct Known {
  Instant until;
  bool is_over = false;
  std::string reason = {};  ///< Empty: the probe did not find the reason.
  std::vector<Answer> waiting = {};
};

// The state of one probe.
struct Talk {
  CertificateQuestion question;
  std::unique_ptr<CertificateHandshake> handshake;
  Descriptor socket = Descriptor();
  bool is_connected = false;
  std::string unsent = {};
};

// False: the connection is lost.
bool receive(Talk& talk) {
  std::array<char, 16384> bytes{};
  const auto count = ::recv(*talk.socket, bytes.data(), bytes.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  talk.unsent += talk.handshake->exchange({bytes.data(), static_cast<std::size_t>(count)});
  return true;
}

// False: the connection is lost.
bool send(Talk& talk) {
  while (!talk.unsent.empty()) {
    const auto count = ::send(*talk.socket, talk.unsent.data(), talk.unsent.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    talk.unsent.erase(0, static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

class CertificateProber::Desk final : public SocketLoop::Handler {
 public:
  explicit Desk(CertificateProbes limits) : limits_(limits) {}

  bool ask(CertificateQuestion question, Answer answer) {
    const std::lock_guard lock(mutex_);
    if (is_stopped_ || question.texts == nullptr || !has_loop()) return false;
    loop_->post([this, question = std::move(question), answer = std::move(answer)]() mutable {
      look_up(std::move(question), std::move(answer));
    });
    return true;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    if (loop_ == nullptr) return;
    loop_->stop();
    talks_.clear();
    for (auto& [key, known] : std::exchange(known_, {})) {
      for (const Answer& answer : known.waiting)
        answer("");
    }
  }

 private:
  using Id = SocketLoop::Id;

  // Starts the thread if it does not run yet. False: the system has no descriptor left.
  // Precondition: the mutex is held.
  bool has_loop() {
    if (loop_ != nullptr) return true;
    auto made = SocketLoop::make("certificates cannot be probed");
    if (!made.ok()) return false;
    loop_ = *std::move(made);
    loop_->begin(*this);
    return true;
  }

  void look_up(CertificateQuestion question, Answer answer) {
    const Instant now = SocketLoop::now();
    std::erase_if(known_, [now](const auto& entry) {
      return entry.second.is_over && entry.second.until <= now;
    });
    Key key = key_of(question);
    const auto found = known_.find(key);
    if (found == known_.end()) {
      if (talks_.size() >= limits_.at_once || known_.size() >= limits_.most_known)
        return answer("");
      known_.emplace(std::move(key),
                     Known{.until = now + limits_.kept_for, .waiting = {std::move(answer)}});
      begin(std::move(question), now);
    } else if (found->second.is_over) {
      answer(found->second.reason);
    } else {
      found->second.waiting.push_back(std::move(answer));
    }
  }

  void begin(CertificateQuestion question, Instant now) {
    const Id id = ++last_id_;
    loop_->set_due(id, std::min(now + limits_.longest, question.until));
    auto handshake = CertificateHandshake::make(question.texts->roots, question.server_name);
    Talk& talk = talks_[id];
    talk = Talk{std::move(question), std::move(handshake)};
    const SocketAddress to = parse_socket_address(talk.question.address);
    if (talk.handshake == nullptr || to.length == 0) return end(id);
    talk.socket = make_socket(to);
    if (*talk.socket < 0 || !begin_connect(talk.socket, to) ||
        !loop_->listen_for(id, *talk.socket, EPOLLOUT)) {
      end(id);
    }
  }

  void happened(Id id) override {
    const auto found = talks_.find(id);
    if (found == talks_.end()) return;
    Talk& talk = found->second;
    if (talk.is_connected) {
      if (!receive(talk)) return end(id);
    } else {
      if (error_of(*talk.socket) != 0) return end(id);
      talk.is_connected = true;
      talk.unsent = talk.handshake->exchange("");
    }
    const bool is_lost = !send(talk);
    const std::uint32_t what = talk.unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
    if (is_lost || talk.handshake->is_over() || !loop_->listen_for(id, *talk.socket, what)) end(id);
  }

  void is_due(Id id) override { end(id); }

  void end(Id id) {
    const auto found = talks_.find(id);
    const Talk talk = std::move(found->second);
    talks_.erase(found);
    loop_->set_due(id, Instant::max());
    Known& known = known_.at(key_of(talk.question));
    known.is_over = true;
    if (talk.handshake != nullptr && talk.handshake->refused())
      known.reason = reason_of(*talk.handshake->refused(), talk.question.roots);
    for (const Answer& answer : std::exchange(known.waiting, {}))
      answer(known.reason);
  }

  const CertificateProbes limits_;
  std::mutex mutex_;  ///< Guards is_stopped_, and loop_ until is_stopped_ is set.
  bool is_stopped_ = false;
  std::unique_ptr<SocketLoop> loop_;

  // Only the loop's thread uses the members below; after its end, stop().
  Id last_id_ = 0;
  std::map<Id, Talk> talks_;
  std::map<Key, Known> known_;  ///< Each talk has an entry, by its question's key.
};

CertificateProber::CertificateProber(CertificateProbes limits)
    : desk_(std::make_shared<Desk>(limits)) {}

CertificateProber::~CertificateProber() {
  desk_->stop();
}

AskForReason CertificateProber::asker() const {
  return [desk = desk_](CertificateQuestion question, Answer answer) {
    return desk->ask(std::move(question), std::move(answer));
  };
}

}  // namespace signalbox::actors
