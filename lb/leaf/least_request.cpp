// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/least_request.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/leaf/warming_petiole.hpp"
#include "lb/leaf/warmth.hpp"
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

// The weights of the READY endpoints: their own, multiplied by the factors of slow start. Empty:
// all weigh alike. `own`: whether their own weights count.
std::vector<double> weights_of(const ReadyEndpoints& ready, const Warmth& warmth, bool own) {
  std::vector<double> weights = warmth.factors();
  if (!own) return weights;
  if (weights.empty()) weights.assign(ready.size(), 1.0);
  for (std::size_t at = 0; at < weights.size(); ++at)
    weights[at] *= ready[at].endpoint->endpoint->weight;
  if (std::ranges::adjacent_find(weights, std::not_equal_to()) == weights.end()) weights.clear();
  return weights;
}

// Draws endpoints by weight.
class WeightedDraw {
 public:
  // One weight for each READY endpoint. Empty: all endpoints weigh alike.
  explicit WeightedDraw(const std::vector<double>& weights) {
    weights_.reserve(weights.size());
    ends_.reserve(weights.size());
    for (const double weight : weights) {
      weights_.push_back(std::max<std::int64_t>(std::llround(weight * kWhole), 1));
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) +
                      static_cast<std::uint64_t>(weights_.back()));
    }
  }

  bool empty() const { return ends_.empty(); }

  // The weight that draws use, in units of 1 / kWhole. At most kWhole, if the endpoints' own
  // weights do not count.
  std::int64_t weight(std::size_t endpoint) const { return weights_[endpoint]; }

  std::size_t draw(std::uint64_t seed, std::uint64_t step) const {
    const std::uint64_t drawn = draw_below(seed, Salt::kEndpoint, ends_.back(), step);
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, drawn) - ends_.begin());
  }

 private:
  static constexpr double kWhole = 65'536;

  std::vector<std::int64_t> weights_;
  std::vector<std::uint64_t> ends_;  // The sum of the weights up to each endpoint, inclusive.
};

class LeastRequestPicker final : public Picker {
 public:
  LeastRequestPicker(ReadyEndpoints ready,
                     std::vector<CallTrackerPtr> counters,
                     std::uint32_t choices,
                     std::optional<double> bias,
                     Warmth warmth)
      : ready_(std::move(ready)),
        owners_(std::move(counters)),
        choices_(choices),
        bias_(bias),
        warmth_(std::move(warmth)),
        weighted_(weights_of(ready_, warmth_, bias.has_value())) {
    counters_.reserve(owners_.size());
    for (const CallTrackerPtr& owner : owners_)
      counters_.push_back(owner->use_counter());
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    warmth_.tell("least_request", ready_, trace);
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    const std::size_t chosen = choose(args, sink);
    sink.tell([&] {
      return PickStep{"least_request",
                      shown(ready_[chosen]),
                      ready_.size() == 1 ? std::string("the only one that is READY") : why(),
                      "CDS"};
    });
    PickResult result;
    result.outcome = ready_[chosen];
    result.trackers.add(*owners_[chosen]);
    return result;
  }

  // The reason of a choice among several endpoints, for explanations.
  std::string why() const {
    const std::string of =
        absl::StrCat(choices_,
                     weighted_.empty() ? " drawn from " : " drawn by weight from ",
                     ready_.size(),
                     " that are READY");
    if (weighted_.empty()) return "the fewest calls of the " + of;
    if (!bias_) return "the fewest calls for its weight of the " + of;
    return absl::StrCat("by chance, less likely with calls in flight (active_request_bias ",
                        *bias_,
                        "), of the ",
                        of);
  }

  template <typename Sink>
  std::size_t choose(const PickArgs& args, const Sink& sink) const {
    if (ready_.size() == 1) return 0;
    if (weighted_.empty()) [[likely]]
      return choose_from<false>(args, sink);
    if (bias_) return choose_by_bias(args, sink);
    return choose_from<true>(args, sink);
  }

  // Draws choices_ endpoints by weight, and then one of them, in proportion to
  // 1 / (calls in flight + 1)^bias. These parts are computed relative to the drawn endpoint with
  // the fewest calls, so that its part is 1 whatever the bias.
  template <typename Sink>
  std::size_t choose_by_bias(const PickArgs& args, const Sink& sink) const {
    std::array<std::size_t, kMostChoices> drawn{};
    std::array<double, kMostChoices> calls{};
    double fewest = 0;
    for (std::uint32_t step = 0; step < choices_; ++step) {
      drawn[step] = sample<true>(args, step);
      // A call may begin and end on different stripes while they are summed up.
      const std::int64_t sum = std::max<std::int64_t>(counters_[drawn[step]].sum(), 0);
      calls[step] = static_cast<double>(sum) + 1;
      fewest = step == 0 ? calls[0] : std::min(fewest, calls[step]);
      tell_drawn(drawn[step], sum, sink);
    }
    std::size_t chosen = drawn[0];
    double parts = 0;
    for (std::uint32_t step = 0; step < choices_; ++step) {
      const double part = std::pow(fewest / calls[step], *bias_);
      parts += part;
      if (random_part(args, choices_ + step) * parts < part) chosen = drawn[step];
    }
    return chosen;
  }

  // A random number in [0, 1).
  static double random_part(const PickArgs& args, std::uint64_t step) {
    return static_cast<double>(draw(args.seed, Salt::kEndpoint, step) >> 11U) * 0x1.0p-53;
  }

  // Draws choices_ endpoints, and returns the one with the fewest calls in flight. kWeighs (slow
  // start without a bias): endpoints are drawn by weight, and an endpoint's calls in flight are
  // divided by its weight before they are compared. If no calls are in flight, the first drawn
  // endpoint is returned, so the shares of calls follow the weights.
  template <bool kWeighs, typename Sink>
  std::size_t choose_from(const PickArgs& args, const Sink& sink) const {
    std::size_t best = sample<kWeighs>(args, 0);
    std::int64_t fewest = counters_[best].sum();
    tell_drawn(best, fewest, sink);
    for (std::uint32_t step = 1; step < choices_; ++step) {
      const std::size_t next = sample<kWeighs>(args, step);
      if (next == best) continue;
      const std::int64_t calls = counters_[next].sum();
      tell_drawn(next, calls, sink);
      if constexpr (kWeighs) {
        if (calls * weighted_.weight(best) >= fewest * weighted_.weight(next)) continue;
      } else {
        if (calls >= fewest) continue;
      }
      best = next;
      fewest = calls;
    }
    return best;
  }

  template <typename Sink>
  void tell_drawn(std::size_t endpoint, std::int64_t calls, const Sink& sink) const {
    sink.tell([&] {
      const std::string part = warmth_.part_of(endpoint);
      std::string reason = absl::StrCat(
          calls, " calls of this policy's in flight", part.empty() ? "" : ", at ", part);
      if (bias_ && !weighted_.empty())
        absl::StrAppend(&reason, ", weight ", ready_[endpoint].endpoint->endpoint->weight);
      return PickStep{"least_request", "drew " + shown(ready_[endpoint]), std::move(reason), "CDS"};
    });
  }

  // Draws one endpoint. If the call is a retry and was sent to that endpoint before, takes the next
  // endpoint to which the call was not sent, if there is one.
  template <bool kWeighs>
  std::size_t sample(const PickArgs& args, std::uint64_t step) const {
    std::size_t drawn = 0;
    if constexpr (kWeighs) {
      drawn = weighted_.draw(args.seed, step);
    } else {
      drawn = draw_below(args.seed, Salt::kEndpoint, ready_.size(), step);
    }
    return args.tried == nullptr ? drawn : first_untried(ready_, args, drawn);
  }

  ReadyEndpoints ready_;  // Never empty.
  std::vector<CallTrackerPtr> owners_;
  // The use_counter() of each of owners_. Copied here, so that the comparison of endpoints reads no
  // tracker.
  std::vector<UseCounter> counters_;
  std::uint32_t choices_;
  std::optional<double> bias_;  // nullopt: the endpoints' own weights do not count.
  Warmth warmth_;
  WeightedDraw weighted_;  // Empty if all weights are equal.
};

class LeastRequest final : public WarmingPetiole {
 public:
  LeastRequest(const LeastRequestConfig& config,
               PolicyContext context,
               EndpointSet::MakeCounter count)
      : WarmingPetiole(
            "least_request", std::move(context), EndpointSet::Connects::kAtOnce, std::move(count)),
        choices_(choices_of(config)),
        bias_(config.active_request_bias) {}

 private:
  bool configure(const ConfigUpdated& update) override {
    const auto& config = config_of<LeastRequestConfig>(update);
    const std::uint32_t choices = choices_of(config);
    const bool is_changed = std::exchange(choices_, choices) != choices;
    const bool is_biased_anew =
        std::exchange(bias_, config.active_request_bias) != config.active_request_bias;
    return set_slow_start(config.slow_start) || is_changed || is_biased_anew;
  }

  PickerPtr make_picker() override {
    if (state() == ConnectivityState::kConnecting) return make_queue_picker();
    if (state() == ConnectivityState::kTransientFailure) return make_fail_picker(failure());
    return std::make_shared<const LeastRequestPicker>(
        endpoints().ready(), endpoints().ready_counters(), choices_, bias_, warm_up());
  }

  std::uint32_t choices_;
  std::optional<double> bias_;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const LeastRequestConfig& config, PolicyContext context) {
  auto count = [retirement = context.retirement] { return make_tracked<InFlight>(retirement); };
  return std::make_unique<LeastRequest>(config, std::move(context), std::move(count));
}

}  // namespace signalbox::lb
