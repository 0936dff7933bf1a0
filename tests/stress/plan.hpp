// SPDX-License-Identifier: Apache-2.0
//
// Plan — the task of one call: its API, and, drawn from the seed, its shape, its deadline, and when
// it is cancelled. The seed decides the plans of a thread, not how threads interleave.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "tests/stress/load.grpc.pb.h"

namespace signalbox::stress {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Random = std::mt19937_64;

enum class Api { kSync, kAsync, kCallback, kGenericAsync, kGenericCallback };
enum class Shape { kUnary, kCollect, kFeed, kChat };

struct Plan {
  std::uint64_t id = 0;
  Api api = Api::kSync;
  Shape shape = Shape::kUnary;
  milliseconds deadline{0};  ///< Counted from the call's start; may lie in the past.
  bool wait_for_ready = false;
  int messages = 1;  ///< The number of messages in each direction that is a stream.
  int hold_ms = 0;
  int status = 0;  ///< The status with which the server is asked to end the call.
  bool cancel_first = false;
  std::optional<milliseconds> cancel_after;
  /// The canceller keeps the context, and so may cancel a call that has ended.
  bool outlive = false;
  bool abandon = false;  ///< The application does not read the status (synchronous streams only).

  Request request() const;
  std::string to_string() const;
};

/// A number in [0, bound).
inline int below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(bound));
}

inline bool one_in(Random& random, int chances) {
  return below(random, chances) == 0;
}

Plan draw_plan(Random& random, Api api);
std::string to_string(Api api);
std::string to_string(Shape shape);
/// "/signalbox.stress.Load/Unary".
std::string method_of(Shape shape);

}  // namespace signalbox::stress
