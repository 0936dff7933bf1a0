// SPDX-License-Identifier: Apache-2.0
//
// ConnectivitySource — how a target is, as the control plane says; what GetState() answers.
//
//   channel actor ─▶ runtime ─▶ [ConnectivitySource] ─▶ state_watch ─▶ the application

#pragma once

#include <functional>
#include <memory>

#include "messages/connectivity.hpp"

namespace signalbox::channel {

class ConnectivitySource {
 public:
  virtual ~ConnectivitySource() = default;

  /// How it is now. `try_to_connect`: leave IDLE; told to the control plane and not waited for.
  virtual ConnectivityState state(bool try_to_connect) = 0;

  /// `changed` is called after every change, and once when the runtime ends (after the wait list
  /// has been closed), on any thread, with no lock held that state() takes, as long as the source
  /// lives: it must be harmless after its owner is gone,
  /// and is forgotten some time after that.
  virtual void watch(std::weak_ptr<const void> owner, std::function<void()> changed) = 0;
};

}  // namespace signalbox::channel
