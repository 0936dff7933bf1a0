// SPDX-License-Identifier: Apache-2.0
//
// custom_picker — wraps the picker of a policy that the user registered.
//
//   pick ─▶ [custom_picker] ─▶ the user's picker ─▶ its answer, if it is valid
//                                              └──▶ threw, or is invalid: Fail INTERNAL, counted
//
// The user's picker runs on the threads of calls, outside any actor. If it throws or returns an
// invalid result, only that call is affected.

#pragma once

#include <memory>
#include <string>

#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// `caller`: see PolicyOptions::caller. `failures`: counts picks that failed because the user's
/// picker threw or returned an invalid result; null: they are not counted.
PickerPtr make_custom_picker(std::string policy,
                             PickerPtr own,
                             LocalityName caller,
                             std::shared_ptr<const StripedCounters<1>> failures);

}  // namespace signalbox::lb
