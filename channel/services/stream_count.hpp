// SPDX-License-Identifier: Apache-2.0
//
// StreamCount — a limit on the streams that a service has open.
//
//   a new stream ─▶ [StreamCount::enter] ─▶ Seat, which counts the stream; or null: too many

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace signalbox::channel {

class StreamCount {
 public:
  /// `refused` is called when enter() returns null.
  StreamCount(int limit, std::function<void()> refused)
      : state_(std::make_shared<State>()), limit_(limit), refused_(std::move(refused)) {}

  /// A Seat counts one open stream. The stream keeps its Seat until the stream ends: the end of the
  /// Seat ends the counting. A Seat may outlive the StreamCount.
  using Seat = std::shared_ptr<void>;

  /// Counts another stream. Returns null if as many streams as the limit allows are open.
  Seat enter() {
    if (state_->open.fetch_add(1) >= limit_) {
      --state_->open;
      refused_();
      return nullptr;
    }
    return {this, [state = state_](void*) { --state->open; }};
  }

 private:
  struct State {
    std::atomic<int> open = 0;
  };

  std::shared_ptr<State> state_;
  const int limit_;
  const std::function<void()> refused_;
};

}  // namespace signalbox::channel
