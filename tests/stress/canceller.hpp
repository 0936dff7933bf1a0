// SPDX-License-Identifier: Apache-2.0
//
// Canceller — one thread that cancels contexts at planned times: before, during or after the call.

#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "tests/stress/plan.hpp"

namespace signalbox::stress {

class Canceller {
 public:
  Canceller();
  ~Canceller();
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;

  /// Cancels the context at `when`, if the context and this object still exist then. `keep`: keeps
  /// the context alive until then, even if its call has ended.
  void cancel_at(Clock::time_point when, std::shared_ptr<grpc::ClientContext> context, bool keep);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::multimap<Clock::time_point, std::function<std::shared_ptr<grpc::ClientContext>()>> due_;
  std::thread thread_;
};

}  // namespace signalbox::stress
