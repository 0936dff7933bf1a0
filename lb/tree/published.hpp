// SPDX-License-Identifier: Apache-2.0
//
// Published — remembers what a policy published last, so that it publishes nothing twice.
//
//   child's report, own decision ─▶ Published::publish ─▶ Publish, if anything changed

#pragma once

#include "messages/lb_events.hpp"

namespace signalbox::lb {

class Published {
 public:
  /// Adds `next` to `effects`, unless its state, status, picker and hosts equal those of the last
  /// publication.
  void publish(Publish next, LbEffects& effects);

 private:
  Publish last_;
};

}  // namespace signalbox::lb
