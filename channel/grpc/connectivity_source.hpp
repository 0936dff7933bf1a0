// SPDX-License-Identifier: Apache-2.0
//
// ConnectivitySource — the connectivity state of a target, for GetState().
//
//   channel actor ─▶ runtime ─▶ [ConnectivitySource] ─▶ state_watch ─▶ the application

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "messages/connectivity.hpp"

namespace signalbox::channel {

class ConnectivitySource {
 public:
  virtual ~ConnectivitySource() = default;

  /// The current state. `try_to_connect`: asks the target's actors to leave IDLE, without waiting.
  virtual ConnectivityState state(bool try_to_connect) = 0;

  /// Names the resource or DNS name that calls without a configuration wait for. For error texts.
  virtual std::string awaited() const { return "a configuration"; }

  /// Calls `changed` after every change of the state, and once when the runtime ends, after the
  /// wait list was closed; never for an invalid target. `changed` runs on any thread, as long as
  /// the source lives. That thread holds no lock that state() takes, so `changed` may call state().
  /// `changed` may still be called after `owner` was destroyed, and must then do nothing. The
  /// source may keep `changed` until the source ends.
  virtual void watch(std::weak_ptr<const void> owner, std::function<void()> changed) = 0;
};

}  // namespace signalbox::channel
