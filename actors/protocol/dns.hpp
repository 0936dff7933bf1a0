// SPDX-License-Identifier: Apache-2.0
//
// The interface of the dns actor: one look-up of a name.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using DnsActor = ActorOf<ResolveName>;

}  // namespace signalbox::protocol
