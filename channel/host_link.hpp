// SPDX-License-Identifier: Apache-2.0
//
// HostLink — the way from targets to the host that serves them, until the runtime cuts it.
//
//   Target ─▶ with(host) ─▶ Host
//   Runtime's end ─▶ cut() ─▶ the host goes
//
// A target may end on any thread, even while its runtime does: on the application's, or on the
// waker's, which may be the last to let go of it. Once cut() has returned, nobody is inside.

#pragma once

#include <mutex>

#include "actors/host.hpp"

namespace signalbox::channel {

class HostLink {
 public:
  explicit HostLink(actors::Host& host) : host_(&host) {}

  /// Calls `use(host)`, which must not block, or does nothing where the link has been cut.
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
