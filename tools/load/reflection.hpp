// SPDX-License-Identifier: Apache-2.0
//
// reflection — asks an endpoint of a channel for the types of a method, by gRPC server reflection.
//
//   SidePlan, channel ─▶ [ask_for_types] ─▶ protoset ─▶ payload_of_json
//                          └ one stream of grpc.reflection.v1, or else of v1alpha

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include <grpcpp/impl/channel_interface.h>

#include "tools/load/side_plan.hpp"

namespace signalbox::tools {

/// The bytes of a FileDescriptorSet with the service of plan.calls.method and all that it imports.
/// The question is a call with the headers of the load's calls. Blocks until `deadline` at most.
/// An error is a sentence that says what to do.
absl::StatusOr<std::string> ask_for_types(const std::shared_ptr<grpc::ChannelInterface>& channel,
                                          const SidePlan& plan,
                                          std::chrono::system_clock::time_point deadline);

}  // namespace signalbox::tools
