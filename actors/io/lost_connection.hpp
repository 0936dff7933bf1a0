// SPDX-License-Identifier: Apache-2.0
//
// lost_connection — learns from a failed call how far the call came, and whether its connection is
// lost.
//
//   call of the program        ─▶ reach_of():   may wait for a second┐
//   health check, load reports ─▶ find_reach(): never waits ─────────┴▶ [one rule] ─▶ Reach
//                                      GrpcConnection::record_loss(), lose() ◀─┘
//
// The rule: a call that failed with gRPC's text of a GOAWAY asks whether its connection takes calls
// any more. A connection that gRPC has made leaves READY by itself after a GOAWAY. A connection
// from a socket has no such state, so the headers of another call are sent: if the transport
// refuses them, the connection is lost (G8 of grpc_connector.hpp).

#pragma once

#include <functional>
#include <memory>

#include <grpc/grpc.h>
#include <grpcpp/client_context.h>

#include "actors/io/call_reach.hpp"
#include "actors/io/grpc_connector.hpp"

namespace signalbox::actors {

/// Whether gRPC's name for the peer of `call` shows that no transport has the call (G4 of
/// grpc_connector.hpp). Precondition: `call` was made on a channel to a grpc_target(). The result
/// is also true for a cancelled call that had a transport; gRPC itself cancels a call when a write
/// fails.
bool has_no_transport(grpc_call* call);

/// How far the context's call, made on `connection`, came. `was_taken`: a transport may have had
/// the call before the call ended. Precondition: the call has its status, which is UNAVAILABLE.
Reach reach_of(grpc::ClientContext& context, const GrpcConnection& connection, bool was_taken);

/// As reach_of(), but never blocks: calls `found` once, now or within about two seconds, then
/// on a thread of gRPC's executor. The context may be destroyed meanwhile.
void find_reach(grpc::ClientContext& context,
                const std::shared_ptr<const GrpcConnection>& connection,
                bool was_taken,
                std::function<void(Reach reach)> found);

/// Whether a server sent the status of the context's call, as far as the reach and the number of
/// trailer entries tell (call_reach.hpp). False: gRPC made the status. Precondition: the call has
/// its status, which is not OK.
bool is_from_server(grpc::ClientContext& context, Reach reach);

}  // namespace signalbox::actors
