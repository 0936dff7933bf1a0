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

  /// What calls without a configuration wait for; for error texts.
  virtual std::string awaited() const { return "a configuration"; }

  /// Calls `changed` after every change, and once when the runtime ends, after the wait list was
  /// closed. Calls come on any thread, without a lock that state() takes, as long as the source
  /// lives. `changed` must be harmless after its owner was destroyed; it is forgotten some time
  /// after that.
  virtual void watch(std::weak_ptr<const void> owner, std::function<void()> changed) = 0;
};

}  // namespace signalbox::channel
