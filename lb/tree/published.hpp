// SPDX-License-Identifier: Apache-2.0
//
// Published — a policy's last publication, so that nothing is published twice.
//
//   child's report, own decision ─▶ Published::publish ─▶ Publish, if anything changed

#pragma once

#include "messages/lb_events.hpp"

namespace signalbox::lb {

class Published {
 public:
  /// Returns a Publish in `effects`, unless state, status, picker and hosts equal those of the last
  /// publication.
  void publish(Publish next, LbEffects& effects);

 private:
  Publish last_;
};

}  // namespace signalbox::lb
