// SPDX-License-Identifier: Apache-2.0
//
// Plan — what one call is to do, drawn from the seed: its API and shape, its deadline, and when it
// is cancelled. The seed decides the plans of a thread, not how threads interleave.

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
  milliseconds deadline{0};  ///< From the start; may be over already.
  bool wait_for_ready = false;
  int messages = 1;  ///< Of each direction that streams.
  int hold_ms = 0;
  int status = 0;  ///< What the server is asked to end the call with.
  bool cancel_first = false;
  std::optional<milliseconds> cancel_after;
  bool outlive = false;  ///< Who cancels keeps the context, so that it cancels what has ended.
  bool abandon = false;  ///< Nobody reads the status (synchronous streams).

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
