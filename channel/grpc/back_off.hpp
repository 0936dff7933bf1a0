// SPDX-License-Identifier: Apache-2.0
//
// BackOff — the pause between two attempts of a call. It blocks no thread.
//
//   retried_call ─▶ start(delay) ─▶ [BackOff] ─▶ over(), once: the time is up, the pause was
//                                                cancelled, or the runtime ended (wait_list)
//
// over() does not know which of the three happened: it always begins the next attempt. After a
// cancellation or the runtime's end, that attempt fails.

#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include <grpcpp/alarm.h>

#include "channel/pick/wait_list.hpp"
#include "messages/ids.hpp"

namespace signalbox::channel {

class BackOff final : public Waiter, public std::enable_shared_from_this<BackOff> {
 public:
  /// Begins a pause. At its end, `over` runs on a thread of gRPC's executor, which then holds no
  /// lock. `waiting`, in which the pause waits for the runtime's end, must live until then.
  static std::shared_ptr<BackOff> start(WaitList& waiting,
                                        Duration delay,
                                        std::function<void()> over);

  BackOff(WaitList& waiting, std::function<void()> over)
      : waiting_(waiting), over_(std::move(over)) {}

  /// Ends the pause now. May be called on any thread once start() has returned. Runs no code of the
  /// application.
  void cancel();

  void wake() override;

 private:
  void set(Duration delay);

  WaitList& waiting_;
  std::function<void()> over_;
  std::mutex mutex_;  // Guards the alarm. Cancelling an alarm before it is set has no effect.
  grpc::Alarm alarm_;
};

}  // namespace signalbox::channel
