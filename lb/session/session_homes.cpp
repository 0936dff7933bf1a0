// SPDX-License-Identifier: Apache-2.0
#include "lb/session/session_homes.hpp"

namespace signalbox::lb {

SessionHome SessionHomes::of(absl::string_view hosts) const {
  SessionHome best;
  for (std::size_t leaf = 0; leaf < seats_.size(); ++leaf) {
    const SessionHosts* const all = seats_[leaf] == nullptr ? nullptr : seats_[leaf]->hosts();
    if (all == nullptr) continue;
    const HostPromise promise = all->promise(hosts);
    if (promise > best.promise) best = {leaf, promise};
  }
  return best;
}

}  // namespace signalbox::lb
