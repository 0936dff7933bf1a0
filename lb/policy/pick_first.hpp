// SPDX-License-Identifier: Apache-2.0
//
// pick_first — one connection, to the first address that answers (gRFC A62; health as in A61).
//
//   parent ─▶ [pick_first] ─▶ subchannel map, one hold per address that is tried or selected
//
//            config, ask                 READY
//   ┌▶ Idle ────────────▶ Connecting ──────────▶ Selected ─┐
//   │                       │      ▲ every address,         │ lost
//   │                       ▼      │ again and again        │
//   │                     TRANSIENT_FAILURE (sticky)        │
//   └───────────────────────────────────────────────────────┘
//
// Reported: Idle→IDLE, Connecting→CONNECTING, or TRANSIENT_FAILURE from the first full pass on,
// Selected→READY, or TRANSIENT_FAILURE while the endpoint is unhealthy.
//
// Invariants
//   I1  TRANSIENT_FAILURE stays until READY: no way back through CONNECTING or IDLE.   (A62)
//   I2  Idle holds no subchannel, Selected exactly one, Connecting every address.
//   I3  A selected connection is kept while its address is in the list, healthy or not. (A61)

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_pick_first(const PickFirstConfig& config, PolicyContext context);

}  // namespace signalbox::lb
