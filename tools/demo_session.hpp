// SPDX-License-Identifier: Apache-2.0
//
// The demo's session: a client that stays with one backend, beside the load that uses all backends.
//
//   [DemoSession] ─▶ CookieJar, generated stub ─▶ drop-in channel
//        ├─▶ FinishedCall, one for each call
//        └─▶ moves()
//
// One thread makes one call after another. An answer from another backend than the previous
// answer's is a move. Moves count from settle() on, because the script kills backends before that.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include <grpcpp/impl/channel_interface.h>

#include "signalbox/cookie_jar.hpp"
#include "tools/call_log.hpp"
#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::tools {

class DemoSession {
 public:
  /// Starts to call. The session's thread calls `on_finished`.
  DemoSession(const std::shared_ptr<grpc::ChannelInterface>& channel,
              std::function<void(const FinishedCall&)> on_finished);
  ~DemoSession();
  DemoSession(const DemoSession&) = delete;
  DemoSession& operator=(const DemoSession&) = delete;

  /// Waits until a backend of this cluster answers, and counts moves from then on. Returns the
  /// backend's name. Without a cookie for the client, the name is empty and moves are not counted.
  absl::StatusOr<std::string> settle(const std::string& cluster, std::chrono::milliseconds at_most);

  /// Stops calling.
  void finish();

  std::uint64_t moves() const;

 private:
  void run();
  FinishedCall call();
  void record_answer(const demo::v1::PlaceReply& reply);

  const std::unique_ptr<demo::v1::Orders::Stub> stub_;
  const std::function<void(const FinishedCall&)> on_finished_;
  CookieJar jar_;

  mutable std::mutex mutex_;  // Guards the members below, except thread_.
  std::condition_variable changed_;
  bool stopping_ = false;
  bool settled_ = false;
  std::string backend_;
  std::string cluster_;
  std::uint64_t moves_ = 0;
  std::thread thread_;
};

}  // namespace signalbox::tools
