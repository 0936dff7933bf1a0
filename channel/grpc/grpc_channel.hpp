// SPDX-License-Identifier: Apache-2.0
//
// The drop-in channel: a grpc::ChannelInterface that routes and picks each call, and gives the call
// to the picked connection. Every generated stub works with it unchanged.
//
//   stub ─▶ [GrpcChannel] ─▶ Router::pick ─┬ complete ─▶ a call of the connection's own channel
//                                          ├ queue ────▶ queued_call, until a publication
//                                          └ fail, drop ▶ a call that has failed already
//   A wait_for_ready call with the outcome `fail` waits, as with `queue`.
//
// Invariants
//   D1  A picked call holds its lb::Pick until the call ends; a call without a call interceptor,
//       until its context ends.
//   D2  A call that certainly never reached a connection is picked again instead of failed, up to
//       100 times (lb::RetryState::kMostUnsent), unless its request is not kept or the application
//       has cancelled it. A call that its route's retry policy covers may be made again after a
//       back-off (lb::RetryState decides), but not once the server has responded.
//   D3  A call's interceptors are made once, in the application's context, and see each step of the
//       call once, whether or not the call waits, and however often it is picked.
//   D4  The channel may be destroyed while calls run or wait; these calls go on. Once the wait list
//       is closed (at the runtime's end), sent calls run to their end, and waiting and new calls
//       fail.
//   D5  Each attempt may have a pick with a Set-Cookie of its own. The application gets the
//       response of one attempt, with the Set-Cookie of that attempt's pick and no other (A55-21).

#pragma once

#include <memory>

#include <grpcpp/impl/channel_interface.h>

#include "channel/grpc/channel_options.hpp"

namespace signalbox::channel {

/// All connections of the router must be actors::GrpcConnections.
std::shared_ptr<grpc::ChannelInterface> make_grpc_channel(GrpcChannelOptions options);

}  // namespace signalbox::channel
