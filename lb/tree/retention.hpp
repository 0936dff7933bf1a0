// SPDX-License-Identifier: Apache-2.0
//
// Retention — keeps a child for fifteen minutes after its composite needed it last (gRFC A56).
//
//   not needed ─▶ begin ─▶ StartTimer ─▶ ran_out ─▶ the composite stops the child
//   needed again, or stopped ─▶ end ─▶ CancelTimer

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// How long a child that is not needed is kept.
inline constexpr Duration kPriorityRetention = std::chrono::minutes(15);

class Retention {
 public:
  /// Starts the fifteen minutes of a child that is not needed any more, unless they run already.
  void begin(const ChildName& child, LbEffects& effects);

  /// Cancels the fifteen minutes, because the child is needed again or is stopped.
  void end(const ChildName& child, LbEffects& effects);

  /// The child for which the fifteen minutes are over now; nullopt: `fired` is another timer.
  std::optional<ChildName> ran_out(const TimerFired& fired);

 private:
  std::map<ChildName, TimerId> timers_;
  std::uint64_t last_ = 0;  ///< Generation of the timer started last.
};

}  // namespace signalbox::lb
