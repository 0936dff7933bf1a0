// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/once_waiter.hpp"

namespace signalbox::channel {

void OnceWaiter::wait() {
  // Keeps this object alive until wake() has returned: once it is in the list, another thread may
  // end the wait and drop the list's reference.
  const auto self = shared_from_this();
  list_->add(self);
  wake();
}

// Threads that call look() at the same time take turns. Unless the wait is over, each calls
// is_over() after it has got the mutex, so no publication is missed (W3 of once_waiter.hpp).
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
