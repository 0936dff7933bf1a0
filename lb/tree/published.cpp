// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/published.hpp"

#include <utility>

#include "lb/health/host_count.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {

void Published::publish(Publish next, LbEffects& effects) {
  SIGNALBOX_INVARIANT(next.picker != nullptr, "a state is published with its picker");
  const bool is_same = next.state == last_.state && next.picker == last_.picker &&
                       next.status == last_.status && same_hosts(next.hosts, last_.hosts);
  if (is_same) return;
  last_ = next;
  effects.push_back(std::move(next));
}

}  // namespace signalbox::lb
