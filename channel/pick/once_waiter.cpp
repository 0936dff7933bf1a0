// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/once_waiter.hpp"

namespace signalbox::channel {

void OnceWaiter::wait() {
  // Keeps this object alive: the list may drop its reference meanwhile.
  const auto self = shared_from_this();
  list_->add(self);
  wake();
}

// A concurrent call of look() waits for the mutex, and then checks is_over() again (W3).
void OnceWaiter::look(bool time_is_over) {
  const auto self = shared_from_this();
  bool was_done = false;
  {
    const std::lock_guard lock(mutex_);
    if (!done_ && !is_over() && !time_is_over) return;
    was_done = std::exchange(done_, true);
  }
  list_->remove(this);
  if (!was_done) call();
}

bool OnceWaiter::cancel() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(done_, true)) return false;
  }
  list_->remove(this);
  return true;
}

}  // namespace signalbox::channel
