// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/round_robin.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/leaf/stride_picker.hpp"
#include "lb/leaf/stride_scheduler.hpp"
#include "lb/leaf/warming_petiole.hpp"
#include "lb/leaf/warmth.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/trace.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::lb {
namespace {

// Each stripe (group of threads) has its own position, on its own cache line. With one shared
// position, every pick would write a cache line that every other pick reads. A thread that is alone
// in its stripe gives even shares, retries apart. Stripes start at random positions, so that they
// seldom use the same endpoint at the same time.
class RoundRobinPicker final : public Picker {
 public:
  RoundRobinPicker(ReadyEndpoints ready, std::uint64_t seed, std::uint64_t edition)
      : ready_(std::move(ready)) {
    for (std::size_t stripe = 0; stripe < kStripes; ++stripe) {
      positions_[stripe].mark.store(
          draw_below(seed, Salt::kEndpoint, ready_.size(), edition * kStripes + stripe),
          std::memory_order_relaxed);
    }
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return turns_of(trace) == Turns::kBySeed ? decide_by_seed(args.seed, trace)
                                             : decide(args, Telling{trace});
  }

 private:
  PickResult decide_by_seed(std::uint64_t seed, PickTrace& trace) const {
    const std::uint64_t turn = draw_below(seed, Salt::kEndpoint, ready_.size());
    trace.tell({"round_robin",
                shown(ready_[turn]),
                absl::StrCat("drawn by the seed: ",
                             turn + 1,
                             " of ",
                             ready_.size(),
                             " that are READY; in a process they take calls by turns"),
                "CDS"});
    PickResult result;
    result.outcome = ready_[turn];
    return result;
  }

  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    std::atomic<std::uint64_t>& mark = positions_[this_thread_stripe()].mark;
    std::uint64_t turn = mark.load(std::memory_order_relaxed);
    if (args.tried != nullptr) [[unlikely]]
      turn = first_untried(ready_, args, turn);
    sink.leave(
        [&] { mark.store(turn + 1 < ready_.size() ? turn + 1 : 0, std::memory_order_relaxed); });
    sink.tell([&] {
      return PickStep{"round_robin",
                      shown(ready_[turn]),
                      absl::StrCat("its turn: ",
                                   turn + 1,
                                   " of ",
                                   ready_.size(),
                                   " that are READY; each group of threads has turns of its own, "
                                   "and the next pick on this thread takes this one"),
                      "CDS"};
    });
    PickResult result;
    result.outcome = ready_[turn];
    return result;
  }

  // The index of the next endpoint. It is loaded and stored, not incremented atomically, because an
  // atomic increment would wait for all memory accesses of the pick. So threads of one stripe may
  // use the same endpoint twice in a row, which hardly changes the shares.
  struct alignas(kCacheLine) Position {
    std::atomic<std::uint64_t> mark{0};
  };

  ReadyEndpoints ready_;  // Never empty.
  mutable std::array<Position, kStripes> positions_;
};

// The configured slow start. nullopt: there is none, or the configuration is not of round_robin: a
// policy that runs a round_robin inside itself may pass on a configuration of its own.
std::optional<SlowStart> slow_start_of(const ConfigUpdated& update) {
  const auto* config =
      update.config == nullptr ? nullptr : std::get_if<RoundRobinConfig>(update.config.get());
  return config == nullptr ? std::nullopt : config->slow_start;
}

class RoundRobin final : public WarmingPetiole {
 public:
  explicit RoundRobin(PolicyContext context)
      : WarmingPetiole("round_robin", std::move(context), EndpointSet::Connects::kAtOnce) {}

 private:
  bool configure(const ConfigUpdated& update) override {
    return set_slow_start(slow_start_of(update));
  }

  PickerPtr make_picker() override {
    if (state() == ConnectivityState::kConnecting) return make_queue_picker();
    if (state() == ConnectivityState::kTransientFailure) return make_fail_picker(failure());
    const Warmth& warmth = warm_up();
    ++edition_;
    if (warmth.is_uneven()) return make_weighing_picker(warmth);
    return std::make_shared<const RoundRobinPicker>(endpoints().ready(), context().seed, edition_);
  }

  PickerPtr make_weighing_picker(const Warmth& warmth) {
    const std::vector<double> alike(warmth.factors().size(), 1.0);
    return make_stride_picker({"round_robin",
                               "from slow start",
                               endpoints().ready(),
                               {},
                               StrideScheduler(alike, warmth.factors()),
                               warmth},
                              draw(context().seed, Salt::kEndpoint, edition_));
  }

  // The number of pickers of READY endpoints so far. Each picker's start positions depend on it.
  std::uint64_t edition_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const RoundRobinConfig& /*config*/, PolicyContext context) {
  return std::make_unique<RoundRobin>(std::move(context));
}

}  // namespace signalbox::lb
