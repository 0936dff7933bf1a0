// SPDX-License-Identifier: Apache-2.0
//
// HostLink — the link from targets to the actors::Host that serves them, until the runtime cuts it.
//
//   Target ─▶ with(host) ─▶ Host
//   ~Runtime ─▶ cut() ─▶ the Host is destroyed
//
// A target may be destroyed on any thread, even while the runtime ends: on a thread of the
// application, or on the waker's thread, which may hold the last reference. So a target reaches the
// Host only through with(). After cut() has returned, no with() is running, and a later with() does
// nothing. Then the Host can be destroyed.

#pragma once

#include <mutex>

#include "actors/host.hpp"

namespace signalbox::channel {

class HostLink {
 public:
  /// A link that is cut from the start.
  HostLink() = default;

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
  actors::Host* host_ = nullptr;
};

}  // namespace signalbox::channel
