// SPDX-License-Identifier: Apache-2.0
//
// The demo's session: a client that stays with one backend, beside the load that goes everywhere.
//
//   [DemoSession] ─▶ CookieJar, generated stub ─▶ drop-in channel
//        ├─▶ FinishedCall, one for each call
//        └─▶ moves()
//
// One thread calls, one call after another. A call that is answered by another backend than the one
// before is a move; moves are counted from when the script says so: before, backends are killed.

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
  /// Begins to call. `on_finished` is called by its thread.
  DemoSession(const std::shared_ptr<grpc::ChannelInterface>& channel,
              std::function<void(const FinishedCall&)> on_finished);
  ~DemoSession();
  DemoSession(const DemoSession&) = delete;
  DemoSession& operator=(const DemoSession&) = delete;

  /// Waits until a backend of this cluster answers, and counts moves from then on. The backend's
  /// name; empty, and nothing is counted, where the client was given no cookie.
  absl::StatusOr<std::string> settle(const std::string& cluster, std::chrono::milliseconds at_most);

  /// Calls no more.
  void finish();

  std::uint64_t moves() const;

 private:
  void run();
  FinishedCall call();
  void note_answer(const demo::v1::PlaceReply& reply);

  const std::unique_ptr<demo::v1::Orders::Stub> stub_;
  const std::function<void(const FinishedCall&)> on_finished_;
  CookieJar jar_;

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable changed_;
  bool stopping_ = false;
  bool settled_ = false;
  std::string backend_;
  std::string cluster_;
  std::uint64_t moves_ = 0;
  std::thread thread_;
};

}  // namespace signalbox::tools
