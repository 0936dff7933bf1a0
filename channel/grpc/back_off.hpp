// SPDX-License-Identifier: Apache-2.0
//
// BackOff — the time between two attempts of a call, in which no thread waits.
//
//   retried_call ─▶ start(delay) ─▶ [BackOff] ─▶ over(), once: the time is up, it was cancelled, or
//                                                the runtime ended (wait_list)
//
// It does not say which: whoever makes the next attempt finds out.

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
  /// `over` runs on a thread of gRPC's executor, with no lock held; until then `waiting` lives.
  static std::shared_ptr<BackOff> start(WaitList& waiting,
                                        Duration delay,
                                        std::function<void()> over);

  BackOff(WaitList& waiting, std::function<void()> over)
      : waiting_(waiting), over_(std::move(over)) {}

  /// over() comes now. Any thread, once start() has returned; nothing of the application's runs on
  /// it.
  void cancel();

  void wake() override;

 private:
  void set(Duration delay);

  WaitList& waiting_;
  std::function<void()> over_;
  std::mutex mutex_;  // Guards the alarm, which may be cancelled before it is set: that is nothing.
  grpc::Alarm alarm_;
};

}  // namespace signalbox::channel
