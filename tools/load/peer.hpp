// SPDX-License-Identifier: Apache-2.0
//
// peer — the endpoint's address in gRPC's name of a call's peer.
//
//   ClientContext::peer() ─▶ [address_of_peer] ─▶ call_log, load engine

#pragma once

#include <string>

namespace signalbox::tools {

/// Returns `127.0.0.1:40001` for gRPC's `ipv4:127.0.0.1:40001`, and for `ipv4:///127.0.0.1:40001`,
/// which gRPC says after a connection broke. Names of Unix sockets keep their `unix:`. Empty: the
/// peer is no endpoint.
std::string address_of_peer(const std::string& peer);

}  // namespace signalbox::tools
