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

/// Queues every pick. One shared picker for all.
PickerPtr make_queue_picker();

/// Fails every pick with `status`, unless it is wait_for_ready. `status` is not OK.
PickerPtr make_fail_picker(absl::Status status);

/// Drops every pick with `status`, wait_for_ready or not. `status` is not OK.
PickerPtr make_drop_picker(absl::Status status);

/// Whether the picker is one of the above, alone or in a make_priority_picker(): it queues, fails
/// or drops every pick.
bool never_completes(const PickerPtr& picker);

/// As `picker`, but picks that are not complete name this priority (PickResult::priority). A number
/// too large for that field is cut to the largest.
PickerPtr make_priority_picker(PickerPtr picker, std::size_t priority);

/// Picks as `picker` does, but the texts of failures and drops have `before` and `after` around the
/// reason. The text of a fail picker is made here, so that no pick makes it.
PickerPtr make_noted_picker(PickerPtr picker, std::string before, std::string after = "");

/// `status` with `before` and `after` around its reason.
absl::Status with_note(const absl::Status& status,
                       absl::string_view before,
                       absl::string_view after = "");

/// Completes every pick on `connection`, which leads to `endpoint`. An empty `endpoint`: the
/// endpoint is unknown.
PickerPtr make_connection_picker(ConnectionPtr connection, ChosenEndpoint endpoint = {});

/// Queues every pick. The first pick carries `ask` to `asks`. Without `asks` it only queues.
PickerPtr make_ask_picker(std::shared_ptr<const AskTarget> asks, PickAsk ask);

}  // namespace signalbox::lb
