// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/stride_picker.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::lb {
namespace {

class StridePicker final : public Picker {
 public:
  StridePicker(StrideTurns turns, std::uint64_t seed)
      : policy_(turns.policy),
        weights_of_(turns.weights_of),
        ready_(std::move(turns.ready)),
        trackers_(std::move(turns.trackers)),
        scheduler_(std::move(turns.scheduler)),
        warmth_(std::move(turns.warmth)) {
    // Stripes (groups of threads) start at random turns, so that they seldom use the same endpoint
    // at the same time.
    for (std::size_t stripe = 0; stripe < kStripes; ++stripe) {
      turns_[stripe].mark.store(packed(drawn(seed, stripe)), std::memory_order_relaxed);
    }
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{}, turn_of_thread());
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    warmth_.tell(policy_, ready_, trace);
    const bool by_seed = turns_of(trace) == Turns::kBySeed;
    return decide(args, Telling{trace}, by_seed ? drawn(args.seed, 0) : turn_of_thread());
  }

 private:
  // The turn of one stripe (group of threads). As in round_robin, picks load and store the turn. To
  // increment it atomically would be slower.
  struct alignas(kCacheLine) Mark {
    std::atomic<std::uint64_t> mark{0};
  };

  static std::uint64_t packed(StrideScheduler::Turn turn) {
    return std::uint64_t{turn.round} << 32U | turn.endpoint;
  }

  static StrideScheduler::Turn unpacked(std::uint64_t mark) {
    return {static_cast<std::uint32_t>(mark), static_cast<std::uint32_t>(mark >> 32U)};
  }

  // A random turn, the same for equal `seed` and `step`.
  StrideScheduler::Turn drawn(std::uint64_t seed, std::uint64_t step) const {
    const std::uint64_t endpoint = draw_below(seed, Salt::kEndpoint, ready_.size(), step);
    const std::uint64_t round =
        draw_below(seed, Salt::kLocality, StrideScheduler::kFullWeight, step);
    return {static_cast<std::uint32_t>(endpoint), static_cast<std::uint32_t>(round)};
  }

  StrideScheduler::Turn turn_of_thread() const {
    return unpacked(turns_[this_thread_stripe()].mark.load(std::memory_order_relaxed));
  }

  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink, StrideScheduler::Turn turn) const {
    const StrideScheduler::Choice choice = scheduler_.pick(turn);
    sink.leave([&] {
      turns_[this_thread_stripe()].mark.store(packed(choice.next), std::memory_order_relaxed);
    });
    std::size_t chosen = choice.endpoint;
    if (args.tried != nullptr) [[unlikely]]
      chosen = first_untried(ready_, args, chosen);
    sink.tell([&] {
      const std::string part = warmth_.part_of(chosen);
      return PickStep{std::string(policy_),
                      shown(ready_[chosen]),
                      absl::StrCat("its turn: weight ",
                                   scheduler_.weight(chosen),
                                   " of ",
                                   StrideScheduler::kFullWeight,
                                   ", ",
                                   weights_of_,
                                   part.empty() ? "" : ", now ",
                                   part,
                                   "; ",
                                   ready_.size(),
                                   " are READY"),
                      "CDS"};
    });
    PickResult result;
    result.outcome = ready_[chosen];
    if (!trackers_.empty()) result.trackers.add(*trackers_[chosen]);
    return result;
  }

  const absl::string_view policy_;
  const absl::string_view weights_of_;
  ReadyEndpoints ready_;
  std::vector<CallTrackerPtr> trackers_;
  StrideScheduler scheduler_;
  Warmth warmth_;
  mutable std::array<Mark, kStripes> turns_;
};

}  // namespace

PickerPtr make_stride_picker(StrideTurns turns, std::uint64_t seed) {
  return std::make_shared<const StridePicker>(std::move(turns), seed);
}

}  // namespace signalbox::lb
