// SPDX-License-Identifier: Apache-2.0
//
// pickers — the small pickers that most policies need.
//
//   policy ─▶ Publish{state, picker} ─▶ … ─▶ snapshot ─▶ Picker::pick
//
// A queue picker makes calls wait for the next snapshot. A connection picker completes on one
// connection. A fail picker fails calls, but lets wait_for_ready calls wait. A drop picker fails
// all calls. An ask picker makes calls wait, and its first pick sends an ask.

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "messages/pick.hpp"

namespace signalbox::lb {

/// Queues every pick. All callers get the same picker.
PickerPtr make_queue_picker();

/// Fails every pick with `status`; calls that are wait_for_ready wait instead. `status` is not OK.
PickerPtr make_fail_picker(absl::Status status);

/// Drops every pick with `status`, wait_for_ready or not. `status` is not OK.
PickerPtr make_drop_picker(absl::Status status);

/// Whether the picker is a queue, fail or drop picker, alone or inside a make_priority_picker().
/// False for all other pickers, such as an ask picker, even if they complete no pick.
bool never_completes(const PickerPtr& picker);

/// Picks as `picker` does. The result of a pick that is not complete also names this priority
/// (PickResult::priority). A number too large for that field becomes the largest that fits.
PickerPtr make_priority_picker(PickerPtr picker, std::size_t priority);

/// Picks as `picker` does, but puts `before` and `after` around the reason in the text of failures
/// and drops. For a fail picker, the whole text is made here, so that picks need not make it.
PickerPtr make_noted_picker(PickerPtr picker, std::string before, std::string after = "");

/// `status` with `before` and `after` around its reason.
absl::Status with_note(const absl::Status& status,
                       absl::string_view before,
                       absl::string_view after = "");

/// Completes every pick on `connection`, which leads to `endpoint`. An empty `endpoint` means that
/// the endpoint is not known. `zone`: see Complete::zone.
PickerPtr make_connection_picker(ConnectionPtr connection,
                                 ChosenEndpoint endpoint = {},
                                 CallZone zone = CallZone::kUnknown);

/// Queues every pick. The first pick also sends `ask` to `asks`, unless `asks` is null.
PickerPtr make_ask_picker(std::shared_ptr<const AskTarget> asks, PickAsk ask);

}  // namespace signalbox::lb
