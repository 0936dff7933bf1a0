// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/least_request.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/leaf/petiole.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint32_t kFewestChoices = 2;
constexpr std::uint32_t kMostChoices = 10;

std::uint32_t choices_of(const LeastRequestConfig& config) {
  return std::clamp(config.choice_count, kFewestChoices, kMostChoices);
}

// Counts the calls in flight to one endpoint. Each running call holds a counted reference (a Use)
// to its trackers. So this tracker's own use_counter() is the number of calls, and ended() need not
// count.
class InFlight final : public CallTracker {
 public:
  void ended(const CallEnd& /*end*/) const noexcept override {}
};

class LeastRequestPicker final : public Picker {
 public:
  LeastRequestPicker(ReadyEndpoints ready,
                     std::vector<CallTrackerPtr> counters,
                     std::uint32_t choices)
      : ready_(std::move(ready)), owners_(std::move(counters)), choices_(choices) {
    counters_.reserve(owners_.size());
    for (const CallTrackerPtr& owner : owners_)
      counters_.push_back(owner->use_counter());
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    const std::size_t chosen = ready_.size() == 1 ? 0 : choose(args, sink);
    sink.tell([&] {
      return PickStep{"least_request",
                      shown(ready_[chosen]),
                      ready_.size() == 1 ? std::string("the only one that is READY")
                                         : absl::StrCat("the fewest calls of the ",
                                                        choices_,
                                                        " drawn from ",
                                                        ready_.size(),
                                                        " that are READY"),
                      "CDS"};
    });
    PickResult result;
    result.outcome = ready_[chosen];
    result.trackers.add(*owners_[chosen]);
    return result;
  }

  template <typename Sink>
  std::size_t choose(const PickArgs& args, const Sink& sink) const {
    std::size_t best = sample(args, 0);
    std::int64_t fewest = counters_[best].sum();
    tell_drawn(best, fewest, sink);
    for (std::uint32_t step = 1; step < choices_; ++step) {
      const std::size_t next = sample(args, step);
      if (next == best) continue;
      const std::int64_t calls = counters_[next].sum();
      tell_drawn(next, calls, sink);
      if (calls >= fewest) continue;
      best = next;
      fewest = calls;
    }
    return best;
  }

  template <typename Sink>
  void tell_drawn(std::size_t endpoint, std::int64_t calls, const Sink& sink) const {
    sink.tell([&] {
      return PickStep{"least_request",
                      "drew " + shown(ready_[endpoint]),
                      absl::StrCat(calls, " calls of this policy's in flight"),
                      "CDS"};
    });
  }

  // Draws one endpoint. If the call (a retry) was sent to it before, takes the next one to which it
  // was not sent.
  std::size_t sample(const PickArgs& args, std::uint64_t step) const {
    const std::size_t drawn = draw_below(args.seed, Salt::kEndpoint, ready_.size(), step);
    return args.tried == nullptr ? drawn : first_untried(ready_, args, drawn);
  }

  ReadyEndpoints ready_;  // Never empty.
  std::vector<CallTrackerPtr> owners_;
  // The use_counter() of each of owners_. Copied here, so that the comparison of endpoints reads no
  // tracker.
  std::vector<UseCounter> counters_;
  std::uint32_t choices_;
};

class LeastRequest final : public Petiole {
 public:
  LeastRequest(const LeastRequestConfig& config,
               PolicyContext context,
               EndpointSet::MakeCounter count)
      : Petiole(
            "least_request", std::move(context), EndpointSet::Connects::kAtOnce, std::move(count)),
        choices_(choices_of(config)) {}

 private:
  bool configure(const ConfigUpdated& update) override {
    const std::uint32_t choices = choices_of(config_of<LeastRequestConfig>(update));
    return std::exchange(choices_, choices) != choices;
  }

  PickerPtr make_picker() override {
    if (state() == ConnectivityState::kConnecting) return make_queue_picker();
    if (state() == ConnectivityState::kTransientFailure) return make_fail_picker(failure());
    std::vector<CallTrackerPtr> counters;
    counters.reserve(endpoints().count(ConnectivityState::kReady));
    for (std::size_t at = 0; at < endpoints().size(); ++at) {
      if (endpoints()[at].connection != nullptr) counters.push_back(endpoints()[at].counter);
    }
    return std::make_shared<const LeastRequestPicker>(
        endpoints().ready(), std::move(counters), choices_);
  }

  std::uint32_t choices_;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const LeastRequestConfig& config, PolicyContext context) {
  auto count = [retirement = context.retirement] { return make_tracked<InFlight>(retirement); };
  return std::make_unique<LeastRequest>(config, std::move(context), std::move(count));
}

}  // namespace signalbox::lb
