// SPDX-License-Identifier: Apache-2.0
//
// The calls of the demo's load, for the engine of `signalbox load`.
//
//   rate, seed ─▶ [demo_calls, demo_requests] ─▶ LoadEngine ─▶ drop-in channel
//                                                    └─▶ EngineRun ─▶ [finished_call] ─▶ CallLog

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include <grpcpp/impl/channel_interface.h>

#include "tools/call_log.hpp"
#include "tools/load/call_plan.hpp"
#include "tools/load/engine_run.hpp"

namespace signalbox::tools {

/// Orders at an even rate, for a year: the caller ends them earlier.
CallPlan demo_calls(double rps, std::uint64_t seed);

/// The requests of the calls, which keep their backends busy for times drawn from the seed. All
/// have the same size.
std::vector<std::string> demo_requests(std::uint64_t seed);

/// Makes one wait_for_ready call, which is no part of the load.
absl::Status make_first_call(const std::shared_ptr<grpc::ChannelInterface>& channel,
                             std::chrono::milliseconds at_most);

/// `clusters`: the cluster of each address of a backend.
FinishedCall finished_call(const NamedCall& call,
                           const std::map<std::string, std::string>& clusters);

}  // namespace signalbox::tools
