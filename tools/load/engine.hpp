// SPDX-License-Identifier: Apache-2.0
//
// LoadEngine — an open loop: calls are sent when they are due, whether or not earlier ones ended.
//
//   Schedule ─▶ [sender thread] ─▶ generic stub ─▶ channel ─▶ [taker thread]
//                    │ SentCall                                    │ EndedCall
//                    └───────▶ ring ─▶ drain() ◀─ ring ◀───────────┘
//
// A completed call takes no lock and no allocation of the engine: it is one value in a ring. (gRPC
// allocates what it needs; a call of a session has its jar's lock.) A call is dropped, and counts
// as not sent, when too many calls are in flight, or when its own timeout has passed before its
// turn came.
//
// A call is *of the closed loop* when, at its sending, fewer than kClosedLoopCallers calls of the
// closed loop were in flight. So these are the calls that a closed loop with that many callers
// would have sent, too.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/channel_interface.h>
#include <grpcpp/support/byte_buffer.h>

#include "signalbox/cookie_jar.hpp"
#include "tools/load/ended_call.hpp"
#include "tools/load/report.hpp"
#include "tools/load/ring.hpp"
#include "tools/load/schedule.hpp"
#include "tools/load/tallies.hpp"

namespace signalbox::tools {

/// Allocate an engine on the heap: its rings have several megabytes.
class LoadEngine {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::string method;   ///< "/orders.v1.Orders/Place"
    std::string payload;  ///< The request's bytes.
    std::vector<std::pair<std::string, std::string>> headers;
    std::chrono::nanoseconds call_timeout = std::chrono::seconds(5);
    std::size_t sessions = 0;  ///< Each session has a cookie jar; calls take turns. 0: no cookies.
    std::int64_t max_in_flight = 10'000;
    RateProfile profile;
    Arrivals arrivals = Arrivals::kPoisson;
    std::uint64_t seed = 1;
    std::chrono::nanoseconds warmup{};
    /// The length of the measured part, which follows the warm-up.
    std::chrono::nanoseconds duration = std::chrono::seconds(10);
  };

  /// The result of drain().
  struct Drained {
    std::vector<SentCall> sent;
    std::vector<EndedCall> ended;  ///< In the order of their ends.
    /// Endpoints reached for the first time. The first of all has number 1.
    std::vector<std::string> endpoints;
  };

  LoadEngine(const std::shared_ptr<grpc::ChannelInterface>& channel, Options options);
  /// Cancels the calls in flight.
  ~LoadEngine();
  LoadEngine(const LoadEngine&) = delete;
  LoadEngine& operator=(const LoadEngine&) = delete;

  /// The warm-up begins at `begin`. Call it once.
  void start(Clock::time_point begin);
  /// Sends no more calls.
  void stop();
  /// Ends the calls in flight CANCELLED, after stop().
  void cancel();

  /// True when no further call will be sent (all were sent, or stop() was called), and every sent
  /// call has ended.
  bool is_done() const;

  /// The calls since the last drain(). One thread drains.
  Drained drain();

  /// CPU time of the engine's own work in the sender and the taker, so far; sampled.
  std::chrono::nanoseconds own_cpu() const;

  /// The status messages of failed calls, and how many calls had each. Precondition: is_done().
  const std::map<std::string, std::uint64_t>& messages() const { return messages_.counts(); }

 private:
  struct Call;
  class OwnCpu;

  static constexpr std::size_t kPlaces = std::size_t{1} << 16;

  void send_all();
  bool wait_until(Clock::time_point due) const;
  void send(Clock::time_point due, std::uint64_t number);
  void take_all();
  void take(Call& call);
  void cancel_busy();
  std::uint32_t endpoint_of(const std::string& peer);
  std::int64_t since_start(Clock::time_point time) const;

  const Options options_;
  grpc::GenericStub stub_;
  const grpc::ByteBuffer request_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<CookieJar>> jars_;
  Schedule schedule_;
  Clock::time_point begin_;  // When the measured part begins, after the warm-up.

  Ring<SentCall, kPlaces> sent_;
  Ring<EndedCall, kPlaces> ended_;
  Ring<Call*, kPlaces> free_;
  // The sender thread uses them; cancel_busy() does after its end.
  std::vector<std::unique_ptr<Call>> calls_;

  std::atomic<std::int64_t> in_flight_ = 0;
  std::atomic<std::int64_t> closed_in_flight_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> cancelling_ = false;
  std::atomic<bool> has_sent_all_ = false;
  std::atomic<std::int64_t> sender_cpu_ns_ = 0;
  std::atomic<std::int64_t> taker_cpu_ns_ = 0;

  // Only the taker thread uses these two, but drain() also reads and empties new_endpoints_.
  EndpointNumbers endpoints_;
  MessageCounts messages_;
  std::mutex mutex_;  // Guards new_endpoints_.
  std::vector<std::string> new_endpoints_;

  std::thread sender_;
  std::thread taker_;
};

}  // namespace signalbox::tools
