// SPDX-License-Identifier: Apache-2.0
//
// CurlLoop — many HTTP transfers of libcurl on one thread, and waits that are not rounded to
// milliseconds.
//
//   add(easy) ─▶ [libcurl's multi interface] ─ sockets, timer ─▶ [epoll] ◀─ wake(), any thread
//                        └▶ next_ended()
//
// curl_multi_poll() waits in whole milliseconds, and looks at every transfer. This loop has a timer
// of the kernel for the next moment at which a call is due, and looks only at sockets with news.
//
// All functions but wake() belong to one thread. A transfer that is in the loop must be taken out
// before its handle is destroyed.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include <curl/curl.h>

#include "actors/io/sockets.hpp"

namespace signalbox::tools {

class CurlLoop {
 public:
  using Clock = std::chrono::steady_clock;

  /// A transfer that has ended, and its result.
  struct Ended {
    CURL* easy = nullptr;
    CURLcode result = CURLE_OK;
  };

  /// At most `connections` idle connections are kept. Raises this process's limit of open files as
  /// far as it goes, because each connection takes one. UNAVAILABLE: the system has no descriptor
  /// left.
  static absl::StatusOr<std::unique_ptr<CurlLoop>> make(std::int64_t connections);
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  /// Begins the transfer. Its handle must not be in the loop.
  void add(CURL* easy);
  /// Ends a transfer that has not ended.
  void remove(CURL* easy);

  /// Lets libcurl work until `until`, until a socket had news, until libcurl's own timer is due, or
  /// until wake().
  void run(Clock::time_point until);
  /// Takes the next transfer that has ended out of the loop; nullopt: there is none.
  std::optional<Ended> next_ended();

  /// Ends the run() that runs, or else the next one. Any thread may call it.
  void wake() const;

 private:
  CurlLoop() = default;
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* loop, void* known);
  static int on_timer(CURLM* multi, long timeout_ms, void* loop);
  void wait(Clock::time_point until);
  void expire();

  actors::Descriptor epoll_;
  actors::Descriptor timer_;
  actors::Descriptor bell_;
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi_{nullptr, &curl_multi_cleanup};
  std::optional<Clock::time_point> due_;  // When libcurl wants to be called, whatever happens.
};

}  // namespace signalbox::tools
