// SPDX-License-Identifier: Apache-2.0
//
// HttpEngine — sends the calls of an OpenLoop as HTTP/1.1 requests to endpoints that the Pick API
// chooses.
//
//   OpenLoop ─ due ─▶ Router::pick_async ─▶ request to the endpoint (CurlLoop) ─▶ OpenLoop
//                          ▲                        │ no connection: pick again
//                          └──── a pause, if no ────┘
//                                other endpoint is READY
//
// One thread sends and takes, so a thread that is too slow shows as lateness of sending. Picks that
// wait end on threads of the runtime, which wake the engine's.
//
// A request that found no connection never reached its endpoint, so it is picked again, until its
// timeout or until a pick fails. All other failures end the call: no request is sent twice.
//
// If a request found a connection, its pick gets the result of the call, as grpc_code_of() has it.
// A route's timeout, the headers that filters add, and a host name that the route asks for
// (auto_host_rewrite) apply. The user's own `host` header comes before the route's.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <curl/curl.h>

#include "signalbox/router.hpp"
#include "tools/load/curl_loop.hpp"
#include "tools/load/http_request.hpp"
#include "tools/load/open_loop.hpp"

namespace signalbox::tools {

class HttpEngine final : public OpenLoop {
 public:
  /// `request` says what to send; `plan.method` is not used.
  HttpEngine(std::shared_ptr<Router> router,
             std::unique_ptr<CurlLoop> loop,
             HttpRequest request,
             CallPlan plan);
  /// Cancels the calls in flight.
  ~HttpEngine() override;

  /// CPU time of the engine's thread so far, with libcurl's work and without the router's work.
  std::chrono::nanoseconds own_cpu() const override;

 private:
  class Call;

  /// A call that is picked again at `at`.
  struct Pause {
    Clock::time_point at;
    Call* call;
  };

  void launch() override;
  void run();
  /// Sends the calls that are due by now, at most kMostAtOnce, and returns when the next one is
  /// due.
  std::optional<Clock::time_point> send_due(std::optional<Clock::time_point> due);
  void cancel_busy();

  // The steps of a call.
  void pick(Call& call);
  void take_picked();
  void send(Call& call);
  void take(const CurlLoop::Ended& ended);
  void pick_again(Call& call);
  void resume();
  void end_unpicked(Call& call);
  void end_reached(Call& call, int code, const std::string& why);
  void end(Call& call, int code, std::uint32_t endpoint, const std::string& why);

  const std::shared_ptr<Router> router_;
  const HttpRequest request_;
  const std::string route_path_;

  std::mutex mutex_;  // Guards picked_.
  std::vector<Call*> picked_;

  // Only the engine's thread uses the following, or the destructor after the thread's end. Other
  // threads only read thread_id_, which is set before the first pick, and call loop_->wake().
  const std::unique_ptr<CurlLoop> loop_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_;
  std::vector<Call*> taken_;  // Empty but for the time of take_picked().
  std::deque<Pause> pauses_;  // In the order of their times: all pauses have one length.
  std::uint64_t number_ = 0;  // The number of the next call.
  std::thread::id thread_id_;

  std::atomic<std::int64_t> thread_cpu_ns_ = 0;
  std::atomic<std::int64_t> router_cpu_ns_ = 0;
  std::thread thread_;
};

}  // namespace signalbox::tools
