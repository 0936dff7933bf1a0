// SPDX-License-Identifier: Apache-2.0
//
// Ledger — every call is entered when it begins and removed when it ends. Each broken rule is kept
// as a sentence, up to 50 of them.
//
//   calls ─▶ begin, end ─▶ [Ledger] ─▶ find_overdue(), broken(), totals()
//
// Rules
//   L1  A call ends once, and no later than its deadline plus a generous slack.
//   L2  A status has a reason: OK comes with the whole answer; CANCELLED if the plan cancels the
//       call, or if a backend stopped during the call or in the second before; DEADLINE_EXCEEDED
//       after the deadline or the route's timeout, or 1/200 of the slack earlier; another code if
//       the server was asked for it. UNAVAILABLE is always allowed.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "tests/stress/plan.hpp"

namespace signalbox::stress {

class Ledger {
 public:
  explicit Ledger(milliseconds slack) : slack_(slack) {}

  void begin(const Plan& plan);
  /// `whole`: the server's whole answer was received. `origin`: where gRPC says that the call
  /// failed.
  void end(const Plan& plan, const grpc::Status& status, bool whole, const std::string& origin);
  /// The application will not read the call's status.
  void abandon(const Plan& plan);

  /// A backend stops now, so calls may end CANCELLED.
  void backend_stopped() { last_stop_ = Clock::now().time_since_epoch().count(); }

  void report(std::string sentence);

  std::size_t open() const;
  /// Returns when at most `calls` calls are open, or after a short while.
  void wait_for_room(std::size_t calls) const;
  /// Reports the open calls that should have ended. Returns false if there are none.
  bool find_overdue();
  std::vector<std::string> broken() const;
  /// Lines that say how many calls ended in which way.
  std::string totals() const;

 private:
  struct Entry {
    Plan plan;
    Clock::time_point begun;
  };

  /// Removes and returns the call's entry; empty if there is none.
  std::vector<Entry> cross_out(const Plan& plan);
  std::string wrong_with(const Entry& entry, const grpc::Status& status, bool whole) const;

  const milliseconds slack_;
  std::atomic<Clock::rep> last_stop_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_one_;
  std::map<std::uint64_t, Entry> open_;
  std::map<std::string, std::map<std::string, std::uint64_t>> ended_;
  std::vector<std::string> broken_;
};

}  // namespace signalbox::stress
