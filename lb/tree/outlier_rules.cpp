// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/outlier_rules.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace signalbox::lb {
namespace {

// The endpoints that an algorithm examines, and counts for minimum_hosts. They have at least one
// call: without calls there is no rate.
std::vector<std::size_t> counted(const std::vector<CallTally>& tallies,
                                 std::uint32_t request_volume) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < tallies.size(); ++at) {
    const std::uint64_t volume = tallies[at].volume();
    if (volume > 0 && volume >= request_volume) places.push_back(at);
  }
  return places;
}

double success_rate(const CallTally& tally) {
  return static_cast<double>(tally.successes) / static_cast<double>(tally.volume());
}

// Ejects outliers one after another, as far as max_ejection_percent and the enforcement draws
// allow.
class Judgement {
 public:
  Judgement(const OutlierDetection& settings,
            std::vector<CallTally>& tallies,
            absl::FunctionRef<std::uint64_t()> draw)
      : settings_(settings), tallies_(tallies), draw_(draw) {
    ejected_ = static_cast<std::size_t>(std::ranges::count_if(tallies_, &CallTally::ejected));
  }

  void pass(DetectionMethod method,
            std::uint32_t enforcement_percent,
            const std::vector<std::size_t>& outliers) {
    for (const std::size_t endpoint : outliers) {
      if (tallies_[endpoint].ejected) continue;
      detections_.push_back({endpoint, method, outcome(enforcement_percent)});
      if (detections_.back().outcome != DetectionOutcome::kEjected) continue;
      tallies_[endpoint].ejected = true;
      ++ejected_;
    }
  }

  std::vector<Detection> take() { return std::move(detections_); }

 private:
  DetectionOutcome outcome(std::uint32_t enforcement_percent) {
    if (!may_eject(ejected_, tallies_.size(), settings_.max_ejection_percent))
      return DetectionOutcome::kMaxEjectionOverflow;
    return draw_() < enforcement_percent ? DetectionOutcome::kEjected
                                         : DetectionOutcome::kEnforcementPercentage;
  }

  const OutlierDetection& settings_;
  std::vector<CallTally>& tallies_;
  absl::FunctionRef<std::uint64_t()> draw_;
  std::size_t ejected_ = 0;
  std::vector<Detection> detections_;
};

}  // namespace

std::vector<std::size_t> success_rate_outliers(const OutlierDetection::SuccessRate& settings,
                                               const std::vector<CallTally>& tallies) {
  std::vector<std::size_t> candidates = counted(tallies, settings.request_volume);
  if (candidates.empty() || candidates.size() < settings.minimum_hosts) return {};

  double sum = 0;
  for (const std::size_t at : candidates)
    sum += success_rate(tallies[at]);
  const auto count = static_cast<double>(candidates.size());
  const double mean = sum / count;
  double squares = 0;
  for (const std::size_t at : candidates) {
    const double distance = success_rate(tallies[at]) - mean;
    squares += distance * distance;
  }
  const double deviation = std::sqrt(squares / count);
  const double threshold = mean - deviation * (settings.stdev_factor / 1000.0);
  std::erase_if(candidates,
                [&](std::size_t at) { return !(success_rate(tallies[at]) < threshold); });
  return candidates;
}

std::vector<std::size_t> failure_percentage_outliers(
    const OutlierDetection::FailurePercentage& settings, const std::vector<CallTally>& tallies) {
  std::vector<std::size_t> candidates = counted(tallies, settings.request_volume);
  if (candidates.size() < settings.minimum_hosts) return {};
  std::erase_if(candidates, [&](std::size_t at) {
    return 100 * tallies[at].failures <= settings.threshold_percent * tallies[at].volume();
  });
  return candidates;
}

bool may_eject(std::size_t ejected, std::size_t endpoints, std::uint32_t max_percent) {
  return ejected == 0 || std::uint64_t{100} * ejected < std::uint64_t{max_percent} * endpoints;
}

// The product of base time and multiplier, limited to the longest time. It divides first, so that
// the product cannot overflow.
Duration ejection_time(const OutlierDetection& settings, std::uint32_t multiplier) {
  const Duration base = settings.base_ejection_time;
  const Duration longest = std::max(base, settings.max_ejection_time);
  if (base <= Duration::zero()) return Duration::zero();
  return std::int64_t{multiplier} > longest / base ? longest : base * multiplier;
}

std::vector<Detection> detect_outliers(const OutlierDetection& settings,
                                       std::vector<CallTally> tallies,
                                       absl::FunctionRef<std::uint64_t()> draw) {
  Judgement judgement(settings, tallies, draw);
  if (const auto& rate = settings.success_rate) {
    judgement.pass(DetectionMethod::kSuccessRate,
                   rate->enforcement_percent,
                   success_rate_outliers(*rate, tallies));
  }
  if (const auto& failures = settings.failure_percentage) {
    judgement.pass(DetectionMethod::kFailurePercentage,
                   failures->enforcement_percent,
                   failure_percentage_outliers(*failures, tallies));
  }
  return judgement.take();
}

}  // namespace signalbox::lb
