// SPDX-License-Identifier: Apache-2.0
//
// PriorityWatch — reports a priority policy's choices to operators.
//
//   priority: each choice ─▶ [PriorityWatch] ─▶ Observe{PriorityActive, FailedOver, FailoverEnded}
//                                     └───────▶ Observe{PrioritiesSeen, PriorityMoved}: the status
//
// A priority carries calls when it is chosen and its child is READY or IDLE. It is then the active
// priority; while none carries calls, -1 is reported. An outage begins when no priority carries
// calls any more, and ends (FailoverEnded) when one does again.

#pragma once

#include <optional>
#include <vector>

#include "messages/lb_events.hpp"

namespace signalbox::lb {

class PriorityWatch {
 public:
  /// Records a choice. `seen`: one entry for each of `config.priorities`, in order. `carrying`: the
  /// index of the chosen child; nullopt: that child cannot carry calls, or there is none.
  void record(const PriorityConfig& config,
              std::vector<PrioritySeen> seen,
              std::optional<std::size_t> carrying,
              Instant now,
              LbEffects& effects);

 private:
  /// The child that carried calls last, and its place at that time.
  struct Carrier {
    ChildName child;
    std::size_t position = 0;
    std::vector<ChildName> order;
  };

  static std::optional<FailedOver> failover(const Carrier& from,
                                            const PriorityConfig& config,
                                            const std::vector<PrioritySeen>& seen,
                                            std::size_t to);

  void tell_move(const PrioritiesSeen& now,
                 std::optional<FailoverReason> failover,
                 Instant at,
                 LbEffects& effects) const;

  std::optional<int> reported_;  ///< The PriorityActive reported last.
  std::optional<Carrier> carrier_;
  /// Since when no priority has carried calls; nullopt: one does, or none ever did.
  std::optional<Instant> lost_at_;
  PrioritiesSeen told_;  ///< The PrioritiesSeen reported last.
};

}  // namespace signalbox::lb
