// SPDX-License-Identifier: Apache-2.0
//
// What became of the calls of signalbox_nightly_client, and its sessions (gRFC A55).
//
//   a call begins ─▶ begin() ─▶ Ticket: its session's cookie
//   a call ends ───▶ end(Ticket, Answer) ─▶ the session's new cookie, and counts()
//
// If there are sessions, every other call belongs to one, to each in turn. The other calls have no
// cookie, so each begins a session that no later call belongs to. Some counts begin again with each
// mark(); they leave out the calls that began before it. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/support/status.h>
#include <nlohmann/json_fwd.hpp>

namespace signalbox::nightly {

struct Session {
  std::string cookie;   // The header of its calls. Empty: it has none yet.
  std::string backend;  // The backend to which the cookie leads.
};

struct Ticket {
  std::optional<std::size_t> number;  // Of the session. None: the call belongs to none.
  Session session;                    // As it was when the call began.
  std::int64_t marks = 0;             // The number of marks before the call.
};

struct Answer {
  grpc::Status status;
  std::string backend;
  std::string set_cookie;  // The header's value. Empty: there was none.
};

class Ledger {
 public:
  explicit Ledger(std::size_t sessions) : sessions_(sessions) {}

  /// None: too many calls are in flight, so this one is left out.
  std::optional<Ticket> begin();
  void end(const Ticket& ticket, const Answer& answer);
  void wait_for_all();

  /// Returns the counts, and begins those that count from the last mark.
  nlohmann::json mark();
  nlohmann::json counts() const;

 private:
  using Numbers = std::map<std::string, std::int64_t>;

  // Counts of calls that began after the last mark.
  struct SinceMark {
    Numbers begun;           // Calls that got a cookie, by the backend that answered.
    Numbers kept;            // Calls with a cookie that led to the backend that answered.
    std::int64_t moved = 0;  // Calls with a cookie that another backend answered.
  };

  void count_session(const Ticket& ticket, const Answer& answer);
  nlohmann::json counts_locked() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t sent_ = 0;
  std::int64_t ok_ = 0;
  std::int64_t lost_ = 0;
  std::int64_t in_flight_ = 0;
  std::int64_t left_out_ = 0;
  Numbers backends_;
  Numbers failed_;
  std::vector<Session> sessions_;
  std::int64_t marks_ = 0;
  SinceMark since_mark_;
};

}  // namespace signalbox::nightly
