// SPDX-License-Identifier: Apache-2.0
#include "lb/published.hpp"

#include <utility>

#include "messages/invariant.hpp"

namespace signalbox::lb {

void Published::publish(Publish next, LbEffects& effects) {
  SIGNALBOX_INVARIANT(next.picker != nullptr, "a state is published with its picker");
  if (next.state == last_.state && next.picker == last_.picker && next.status == last_.status) {
    return;
  }
  last_ = next;
  effects.push_back(std::move(next));
}

}  // namespace signalbox::lb
