// SPDX-License-Identifier: Apache-2.0
//
// AskRelay — stands between pickers and their policies, and sees the asks of picks (PickAsk).
//
//   picker ─ PickAsk ─▶ [the relay's AskTarget] ─▶ policy actor
//
// A recording notes the asks; a replay makes them, because it has no calls.

#pragma once

#include <memory>
#include <string>

#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::actors {

class AskRelay {
 public:
  virtual ~AskRelay() = default;

  /// Returns the target to which the pickers of the policy send their asks. It may be `policy`
  /// itself. Thread-safe.
  virtual std::shared_ptr<const AskTarget> relay(const std::string& target,
                                                 const PolicyPath& path,
                                                 std::shared_ptr<const AskTarget> policy) = 0;
};

}  // namespace signalbox::actors
