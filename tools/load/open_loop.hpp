// SPDX-License-Identifier: Apache-2.0
//
// OpenLoop — the parts of a load engine that do not depend on its protocol: when calls are due,
// which calls are dropped, and the facts about calls.
//
//   Schedule ─▶ [OpenLoop] ─ next_due() ─▶ engine ─▶ network
//                   ▲ begin(), record() ─────┘
//                   └ SentCall, EndedCall ─▶ rings ─▶ drain()
//
// The loop is open: calls are sent when they are due, whether or not earlier ones ended. A call is
// dropped, and counts as not sent, when too many calls are in flight, or when its own timeout has
// passed before its turn came.
//
// A call is *of the closed loop* when, at its sending, fewer than CallPlan::closed_loop_callers
// calls of the closed loop were in flight. So these are the calls that a closed loop with that many
// callers would have sent, too.
//
// An engine has one sending thread and one thread that takes answers; they may be the same thread.
// Protected functions say which of the two may call them.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "signalbox/cookie_jar.hpp"
#include "tools/load/call_plan.hpp"
#include "tools/load/ended_call.hpp"
#include "tools/load/ring.hpp"
#include "tools/load/schedule.hpp"
#include "tools/load/tallies.hpp"

namespace signalbox::tools {

/// CPU time of the calling thread.
std::chrono::nanoseconds thread_cpu();

/// Allocate an engine on the heap: its rings have several megabytes.
class OpenLoop {
 public:
  using Clock = std::chrono::steady_clock;

  /// The result of drain().
  struct Drained {
    std::vector<SentCall> sent;
    std::vector<EndedCall> ended;  ///< In the order of their ends.
    /// Endpoints reached for the first time. The first of all has number 1.
    std::vector<std::string> endpoints;
    /// Messages of failed calls that came for the first time. The first of all has number 1.
    std::vector<std::string> messages;
  };

  explicit OpenLoop(CallPlan plan);
  virtual ~OpenLoop() = default;
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  const CallPlan& plan() const { return plan_; }

  /// The warm-up begins at `begin`. Call it once.
  void start(Clock::time_point begin);

  /// Sends no more calls.
  void stop() { stopping_ = true; }

  /// Ends the calls in flight CANCELLED, after stop().
  void cancel() { cancelling_ = true; }

  /// True when no further call will be sent (all were sent, or stop() was called), and every sent
  /// call has ended.
  bool is_done() const { return has_sent_all_ && in_flight_ == 0; }

  /// The calls since the last drain(). One thread drains.
  Drained drain();

  /// CPU time of the engine's own work so far.
  virtual std::chrono::nanoseconds own_cpu() const = 0;

  /// The status messages of failed calls, and how many calls had each. Precondition: is_done().
  std::map<std::string, std::uint64_t> messages() const { return messages_.counts(); }

 protected:
  /// How long an engine's sending thread waits at most before it looks for stop().
  static constexpr auto kLook = std::chrono::milliseconds(50);
  static constexpr std::size_t kPlaces = std::size_t{1} << 16;

  /// The loop's part of a call in flight.
  struct BegunCall {
    Clock::time_point due;
    Clock::time_point sent;
    std::int32_t session = EndedCall::kNoSession;
    bool is_closed_loop = false;
  };

  /// Adds the CPU time of a part of a thread's work to a sum. Reading a thread's CPU clock is a
  /// system call, so only one part in kSampleEvery is measured, and its time counts kSampleEvery
  /// times.
  class SampledCpu {
   public:
    SampledCpu(std::uint64_t number, std::atomic<std::int64_t>& sum);
    ~SampledCpu();
    SampledCpu(const SampledCpu&) = delete;
    SampledCpu& operator=(const SampledCpu&) = delete;

   private:
    static constexpr std::uint64_t kSampleEvery = 32;

    bool is_sampled_;
    std::atomic<std::int64_t>& sum_;
    std::chrono::nanoseconds before_{};
    std::chrono::nanoseconds reading_{};  // What it takes to read the clock.
  };

  /// Starts the engine's threads.
  virtual void launch() = 0;

  bool is_stopping() const { return stopping_; }

  bool is_cancelling() const { return cancelling_; }

  bool has_sent_all() const { return has_sent_all_; }

  bool is_idle() const { return in_flight_ == 0; }

  /// The sender: when the next call is due; nullopt: after the end of the run, or after stop().
  std::optional<Clock::time_point> next_due();
  /// The sender: the call number `number` was due, and is sent now. nullopt: the call is dropped.
  std::optional<BegunCall> begin(Clock::time_point due, std::uint64_t number);

  /// The sender: there will be no further call.
  void note_all_sent() { has_sent_all_ = true; }

  /// The taker: an EndedCall that ends now, without an endpoint.
  EndedCall ended_call(const BegunCall& call, int code) const;
  /// The taker: the number of the endpoint with this name of gRPC's, such as ipv4:127.0.0.1:80.
  std::uint32_t endpoint_of(const std::string& peer);

  /// The taker: counts the message of a failed call, and returns its number. The message is `code`
  /// and `why` with a colon between them.
  std::uint32_t message_of(absl::string_view code, absl::string_view why);

  /// The taker: passes the call to drain().
  void record(const EndedCall& ended);
  /// The taker: the call has ended. leave() is called last for a call: the engine may be destroyed
  /// afterwards.
  void leave(bool is_closed_loop);

  /// The nanoseconds from the beginning of the measured part until `time`, as EndedCall has them.
  std::int64_t since_start(Clock::time_point time) const;

  /// The jar of a session of this engine.
  CookieJar& jar(std::int32_t session) { return *jars_[static_cast<std::size_t>(session)]; }

 private:
  const CallPlan plan_;
  std::vector<std::unique_ptr<CookieJar>> jars_;
  Schedule schedule_;
  Clock::time_point begin_;  // When the measured part begins, after the warm-up.

  Ring<SentCall, kPlaces> sent_;
  Ring<EndedCall, kPlaces> ended_;

  std::atomic<std::int64_t> in_flight_ = 0;
  std::atomic<std::int64_t> closed_in_flight_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> cancelling_ = false;
  std::atomic<bool> has_sent_all_ = false;

  // Only the taker thread uses these three.
  EndpointNumbers endpoints_;
  MessageCounts messages_;
  std::string text_;  // The last message of message_of(). Its memory is used again.

  // The names that drain() has not returned yet. A call with known names does not lock mutex_.
  std::mutex mutex_;  // Guards new_endpoints_ and new_messages_.
  std::vector<std::string> new_endpoints_;
  std::vector<std::string> new_messages_;
};

}  // namespace signalbox::tools
