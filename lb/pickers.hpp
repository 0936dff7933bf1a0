// SPDX-License-Identifier: Apache-2.0
//
// pickers — the small pickers that most policies need.
//
//   policy ─▶ Publish{state, picker} ─▶ … ─▶ snapshot ─▶ Picker::pick
//
// Queue: wait for news. Connection: this one. Fail: fails unless wait_for_ready. Drop: fails in any
// case. Ask: queues, and the first pick tells its ask (design: asks are told, never waited for).

#pragma once

#include <memory>

#include "absl/status/status.h"

#include "messages/pick.hpp"

namespace signalbox::lb {

/// Queues every pick. One shared picker for all.
PickerPtr make_queue_picker();

/// Fails every pick with `status`, unless it is wait_for_ready. `status` is not OK.
PickerPtr make_fail_picker(absl::Status status);

/// Drops every pick with `status`, wait_for_ready or not. `status` is not OK.
PickerPtr make_drop_picker(absl::Status status);

/// Completes every pick on `connection`, which stands for `endpoint` (none: the picker does not
/// say).
PickerPtr make_connection_picker(ConnectionPtr connection, ChosenEndpoint endpoint = {});

/// Queues every pick; one of them (the first) carries `ask` to `asks`. Without a target: queues.
PickerPtr make_ask_picker(std::shared_ptr<const AskTarget> asks, PickAsk ask);

}  // namespace signalbox::lb
