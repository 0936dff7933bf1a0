// SPDX-License-Identifier: Apache-2.0
//
// custom_picker — wraps the picker of a policy that the user registered.
//
//   pick ─▶ [custom_picker] ─▶ the user's picker ─▶ its answer, if it is valid
//                                              └──▶ threw, or is invalid: Fail INTERNAL, counted
//
// Picks run on the callers' threads. A fault of the user's picker therefore fails that one call,
// and nothing else.

#pragma once

#include <memory>
#include <string>

#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// `failures`: counts picks that failed by a fault of the user's picker; null: they are not
/// counted.
PickerPtr make_custom_picker(std::string policy,
                             PickerPtr own,
                             std::shared_ptr<const StripedCounters<1>> failures);

}  // namespace signalbox::lb
