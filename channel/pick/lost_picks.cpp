// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/lost_picks.hpp"

#include <algorithm>

namespace signalbox::channel {

void LostPicks::put_off(lb::Pick& pick) {
  const Address& address = pick.connection()->address();
  const bool is_new = std::ranges::find(addresses_, address) == addresses_.end();
  if (is_new) addresses_.push_back(address);
  // The endpoint may have other connections beside the lost one.
  const bool may_try_again = is_new || pick.has_stream();
  may_go_elsewhere_ = may_try_again && addresses_.size() <= kMost;
  pick.put_off();
}

TriedAddresses LostPicks::avoided(const TriedAddresses* tried) const {
  TriedAddresses avoided = addresses_;
  if (tried != nullptr) avoided.insert(avoided.end(), tried->begin(), tried->end());
  return avoided;
}

void pick_elsewhere(const lb::Router& router, lb::Pick& pick, const lb::CallArgs& call) {
  LostPicks lost;
  do {
    lost.put_off(pick);
    if (!lost.may_go_elsewhere()) return;
    const TriedAddresses avoided = lost.avoided(call.tried);
    lb::CallArgs args = call;
    args.tried = &avoided;
    router.repick(pick, args);
  } while (is_lost(pick));
}

}  // namespace signalbox::channel
