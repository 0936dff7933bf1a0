// SPDX-License-Identifier: Apache-2.0
//
// custom_picker — around the picker of a policy that the user registered.
//
//   pick ─▶ [custom_picker] ─▶ the user's picker ─▶ its answer, if a picker may give it
//                                              └──▶ threw, or wrong: Fail INTERNAL, counted
//
// Picks run on the threads of those who call: what the user's picker does wrong costs that call,
// and nobody else.

#pragma once

#include <memory>
#include <string>

#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// `failures`: counts picks that failed so; null: nobody does.
PickerPtr make_custom_picker(std::string policy,
                             PickerPtr own,
                             std::shared_ptr<const StripedCounters<1>> failures);

}  // namespace signalbox::lb
