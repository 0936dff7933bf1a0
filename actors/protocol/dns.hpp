// SPDX-License-Identifier: Apache-2.0
//
// One look-up of a name.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using DnsActor = ActorOf<ResolveName>;

}  // namespace signalbox::protocol
