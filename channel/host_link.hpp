// SPDX-License-Identifier: Apache-2.0
//
// HostLink — the link from targets to the host that serves them, until the runtime cuts it.
//
//   Target ─▶ with(host) ─▶ Host
//   Runtime's end ─▶ cut() ─▶ the host goes
//
// A target may be destroyed on any thread, even during the runtime's end: on an application's
// thread, or on the waker's, which may hold the last reference. Once cut() has returned, no with()
// runs and none reaches the host.

#pragma once

#include <mutex>

#include "actors/host.hpp"

namespace signalbox::channel {

class HostLink {
 public:
  explicit HostLink(actors::Host& host) : host_(&host) {}

  /// Calls `use(host)`, which must not block; does nothing after cut().
  template <typename Use>
  void with(const Use& use) {
    const std::lock_guard lock(mutex_);
    if (host_ != nullptr) use(*host_);
  }

  void cut() {
    const std::lock_guard lock(mutex_);
    host_ = nullptr;
  }

 private:
  std::mutex mutex_;
  actors::Host* host_;
};

}  // namespace signalbox::channel
