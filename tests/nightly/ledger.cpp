// SPDX-License-Identifier: Apache-2.0
#include "tests/nightly/ledger.hpp"

#include <utility>

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

namespace signalbox::nightly {
namespace {

constexpr std::int64_t kMostInFlight = 20'000;
constexpr std::size_t kMostReasons = 20;  // Further failures are counted under "other".

// The cookie without its attributes, as a caller sends it back.
std::string cookie_in(const std::string& set_cookie) {
  return set_cookie.substr(0, set_cookie.find(';'));
}

}  // namespace

std::optional<Ticket> Ledger::begin() {
  const std::lock_guard lock(mutex_);
  if (in_flight_ >= kMostInFlight) {
    ++left_out_;
    return std::nullopt;
  }
  ++in_flight_;
  const auto turn = static_cast<std::size_t>(sent_++);
  Ticket ticket{.number = std::nullopt, .session = {}, .marks = marks_};
  if (!sessions_.empty() && turn % 2 == 0) {
    ticket.number = turn / 2 % sessions_.size();
    ticket.session = sessions_[*ticket.number];
  }
  return ticket;
}

void Ledger::end(const Ticket& ticket, const Answer& answer) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  if (answer.status.ok()) {
    ++ok_;
    ++backends_[answer.backend];
    count_session(ticket, answer);
  } else {
    std::string reason =
        absl::StrCat(answer.status.error_code(), ": ", answer.status.error_message());
    if (failed_.size() >= kMostReasons && !failed_.contains(reason)) reason = "other";
    ++failed_[reason];
    ++lost_;
  }
  changed_.notify_all();
}

void Ledger::count_session(const Ticket& ticket, const Answer& answer) {
  if (ticket.number && !answer.set_cookie.empty())
    sessions_[*ticket.number] = {cookie_in(answer.set_cookie), answer.backend};
  if (ticket.marks != marks_) return;
  if (!answer.set_cookie.empty()) ++since_mark_.begun[answer.backend];
  if (ticket.session.cookie.empty()) return;
  if (ticket.session.backend == answer.backend)
    ++since_mark_.kept[answer.backend];
  else
    ++since_mark_.moved;
}

void Ledger::wait_for_all() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
}

nlohmann::json Ledger::mark() {
  const std::lock_guard lock(mutex_);
  auto before = counts_locked();
  ++marks_;
  since_mark_ = {};
  return before;
}

nlohmann::json Ledger::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_locked();
}

nlohmann::json Ledger::counts_locked() const {
  Numbers hosts;
  for (const Session& session : sessions_) {
    if (!session.cookie.empty()) ++hosts[session.backend];
  }
  return {{"sent", sent_},
          {"ok", ok_},
          {"lost", lost_},
          {"in_flight", in_flight_},
          {"left_out", left_out_},
          {"backends", backends_},
          {"failed", failed_},
          {"sessions", hosts},
          {"begun", since_mark_.begun},
          {"kept", since_mark_.kept},
          {"moved", since_mark_.moved}};
}

}  // namespace signalbox::nightly
