// SPDX-License-Identifier: Apache-2.0
//
// Closed loops: each thread makes its next call as soon as its last call has been answered.
//
//   one_call(thread) ─▶ [run_closed_loop] ─▶ latencies, failures

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include <grpcpp/support/status.h>

#include "tests/bench/side.hpp"

namespace signalbox::bench {

struct ClosedLoopRun {
  std::vector<std::uint32_t> latencies_ns;
  double seconds = 0;
};

using OneCall = std::function<grpc::Status(std::size_t thread)>;

/// Calls `one_call` in a loop on each of `threads` threads for `length`. Returns an error if any
/// call failed.
absl::StatusOr<ClosedLoopRun> run_closed_loop(std::size_t threads,
                                              std::chrono::duration<double> length,
                                              const OneCall& one_call);

/// Makes one synchronous unary call. `cookie`: the session cookie that the call carries; empty:
/// none.
grpc::Status place(Stub& stub, const std::string& cookie = "");

}  // namespace signalbox::bench
