// SPDX-License-Identifier: Apache-2.0
//
// Workload — counts the messages that one actor passes to its core, and measures some of them.
//
//   actor: feed(event) ─▶ [Workload::begin] ─▶ counts ─▶ (the core's step, the effects) ─▶ duration
//                                                  └▶ ActorStats of its kind of actor ─▶ metrics
//
// Actors of one kind share an ActorStats. The first message and then every kOneIn-th is measured:
// the time that its handling took, and how many messages waited behind it. The clock is the actor
// system's, so times are virtual in a simulation.

#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "actors/protocol/caf_version.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {

class Workload {
 public:
  static constexpr std::uint32_t kOneIn = 16;

  Workload() = default;

  explicit Workload(std::shared_ptr<const metrics::ActorStats> stats) : stats_(std::move(stats)) {}

  /// Lives while a message is handled. If the message is measured, the destructor records the
  /// duration.
  template <typename Self>
  class Measured {
   public:
    Measured(Self* self, const metrics::ActorStats* stats)
        : self_(self),
          stats_(stats),
          began_(stats == nullptr ? Instant() : protocol::now_of(self)) {}

    ~Measured() {
      if (stats_ != nullptr) stats_->record_handled(protocol::now_of(self_) - began_);
    }

    Measured(const Measured&) = delete;
    Measured& operator=(const Measured&) = delete;

   private:
    Self* const self_;
    const metrics::ActorStats* const stats_;  ///< Null: this message is not measured.
    const Instant began_;
  };

  /// The actor `self` begins to handle a message. Keep the result until the message is handled.
  template <typename Self>
  Measured<Self> begin(Self* self) {
    stats_->count_message();
    const bool is_measured = messages_++ % kOneIn == 0;
    if (is_measured) stats_->record_waiting(protocol::waiting_messages(self));
    return {self, is_measured ? stats_.get() : nullptr};
  }

 private:
  std::shared_ptr<const metrics::ActorStats> stats_;
  std::uint32_t messages_ = 0;
};

}  // namespace signalbox::actors
