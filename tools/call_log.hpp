// SPDX-License-Identifier: Apache-2.0
//
// CallLog — counts the outcomes of the demo's calls, and separates failures that a killed backend
// explains from all other failures.
//
//   load ─▶ add(FinishedCall) ─▶ [CallLog] ─▶ live line, table, JSON
//   script ─▶ kill_begins, kill_ended, primary_back ─▶
//
// The rule. A call was *in flight at a kill* if
//   – its endpoint is one of the killed backends: the call had been bound to a connection to that
//     backend, and
//   – it began at most kNoticeTime after the killed processes were gone (a client learns
//     that its connection is closed only when it reads from the socket), and
//   – it ended after kill_begins().
// `failed_in_flight` counts the calls in flight at a kill that failed UNAVAILABLE. Every other
// failure, whatever its cause, is `failed_other`: a call that was never bound, that was bound to a
// live backend, that began too late, or that failed in another way.
//
// Not thread-safe: the owner guards it with a mutex.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/load/histogram.hpp"

namespace signalbox::tools {

using CallTime = std::chrono::steady_clock::time_point;

/// The longest time that a client may take to read that its connection was closed.
inline constexpr std::chrono::milliseconds kNoticeTime{250};

struct FinishedCall {
  CallTime due;      ///< The scheduled time of sending. Latency counts from here.
  CallTime started;  ///< The time at which the call was handed to the channel.
  CallTime ended;
  bool ok = false;
  int code = 0;                ///< gRPC's status code.
  bool is_of_session = false;  ///< A call of DemoSession, which the load's schedule does not have.
  std::string address;         ///< The endpoint's, `127.0.0.11:40000`; empty: it reached none.
  std::string cluster;         ///< The cluster that answered; empty without an answer.
  std::string error;           ///< gRPC's code and message of a failure.
};

/// Counts of the calls that ended since the start, or in an interval. Only `failed` includes calls
/// of the demo's session; all other members count calls of the load alone.
struct CallCounts {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  /// The number of answered calls of each cluster.
  std::map<std::string, std::uint64_t> per_cluster;
  /// Latency of answered calls in ns, from `due` to the end.
  LatencyHistogram latency;
};

class CallLog {
 public:
  /// `leaves`: the clusters, best first.
  explicit CallLog(std::vector<std::string> leaves);

  void add(const FinishedCall& call);

  /// Call this before the first signal is sent to the backends at these addresses
  /// (`127.0.0.11:40000`).
  void kill_begins(CallTime now, const std::set<std::string>& addresses);
  /// Call this when all backends of the newest kill have ended.
  void kill_ended(CallTime now);
  /// Call this when the first backend of the best cluster is ready again.
  void primary_back(CallTime now);

  /// The counts since the previous take_interval().
  CallCounts take_interval();

  const CallCounts& totals() const { return totals_; }

  std::uint64_t in_flight_at_kill() const { return in_flight_at_kill_; }

  std::uint64_t failed_in_flight() const { return failed_in_flight_; }

  std::uint64_t failed_other() const { return failed_other_; }

  /// The error of the first call in failed_other().
  const std::string& first_other_error() const { return first_other_error_; }

  /// The time from the begin of the first kill to the first answer of the second-best cluster;
  /// nullopt: no such answer yet.
  std::optional<std::chrono::nanoseconds> failover() const;
  /// The time from primary_back() to the best cluster's first answer after the first kill; nullopt:
  /// no such answer yet.
  std::optional<std::chrono::nanoseconds> failback() const;

 private:
  struct Kill {
    CallTime begun;
    std::optional<CallTime> ended;
    std::set<std::string> addresses;
  };

  bool was_in_flight_at_a_kill(const FinishedCall& call) const;
  void record_answer(const FinishedCall& call);

  std::vector<std::string> leaves_;
  std::vector<Kill> kills_;
  CallCounts totals_;
  CallCounts interval_;
  std::uint64_t in_flight_at_kill_ = 0;
  std::uint64_t failed_in_flight_ = 0;
  std::uint64_t failed_other_ = 0;
  std::string first_other_error_;
  std::optional<CallTime> failed_over_;
  std::optional<CallTime> primary_back_;
  std::optional<CallTime> failed_back_;
};

}  // namespace signalbox::tools
