// SPDX-License-Identifier: Apache-2.0
//
// override_host's picker — picks the host of a call's session, or else lets the child pick.
//
//   endpoints, subchannel map ─▶ HostSlots: the hosts of cookies, and their states ─┐
//   child's picker ─────────────────────────────────────────────────────────────────┴▶ the picker
//
// The first rule that fits decides about a call of a session:
//   – The first READY address of its cookie takes the call.
//   – The call waits for the first IDLE address, and the picker asks to connect it.
//   – The call waits for an address that is CONNECTING.
//   – The call waits for the first address without a subchannel, which is then created.
//   – The child picks, or the call fails if its session is strict.
//
// lb/session/host_slots decides which addresses can be used, and finds the host of a known cookie
// without decoding it.
//
// Takes no lock. Allocates nothing on the complete path, unless it has to decode a cookie. Writes
// only SessionMarks (the time of a host's last use) and, once for each host, the flag that its ask
// was sent.
//
// Source: gRFC A75 (the pick), A55 (strict is Envoy's), A61 (several addresses).

#pragma once

#include <memory>

#include "lb/session/host_slots.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// `asks`: receives the asks to connect a host (kConnect) or to create its subchannel (kCreate), at
/// most one for each address of `slots`. Null: no asks are sent.
PickerPtr make_override_host_picker(PickerPtr child,
                                    HostSlotsPtr slots,
                                    std::shared_ptr<const AskTarget> asks);

}  // namespace signalbox::lb
