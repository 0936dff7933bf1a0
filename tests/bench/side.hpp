// SPDX-License-Identifier: Apache-2.0
//
// The two sides of a comparison behind one face: signalbox's drop-in channel, or gRPC's own.
//
//   GRPC_XDS_BOOTSTRAP ─▶ [Side] ─▶ grpc::ChannelInterface ─▶ the same generated stub
//
// Both read the same bootstrap and have their default options: that is what a user gets.

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "signalbox/router.hpp"
#include "signalbox/runtime.hpp"
#include "tools/proto/orders.grpc.pb.h"

namespace signalbox::bench {

using Stub = demo::v1::Orders::Stub;

/// What the demo's service is called with, by hand.
inline constexpr const char* kMethodPath = "/signalbox.demo.v1.Orders/Place";

struct Side {
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  std::unique_ptr<Runtime> runtime;  ///< Null: the peer.
  std::shared_ptr<Router> router;    ///< Null: the peer.
  std::unique_ptr<Stub> stub;
};

/// `counts_calls`: of ours; false: with MetricsDetail::kNone.
absl::StatusOr<Side> make_side(bool is_ours, const std::string& target, bool counts_calls);

/// Another target of the same side.
std::unique_ptr<Stub> make_stub(const Side& side, const std::string& target);

/// Makes a call that waits for a backend.
grpc::Status call_once(Stub& stub);

/// Waits until `endpoints` connections to `port` are established, by any process.
absl::Status wait_for_connections(int endpoints, int port);

/// Makes calls until `endpoints` connections to `port` are established, by any process, and then
/// for a moment more.
absl::Status warm_up(Stub& stub, int endpoints, int port);

}  // namespace signalbox::bench
