// SPDX-License-Identifier: Apache-2.0
//
// StrideScheduler — gives each endpoint a share of the picks by its weight (gRFC A58).
//
//   weights ─▶ [StrideScheduler] ─▶ pick(turn): the endpoint of this turn, and the next turn
//
// The scheduler visits the endpoints by index, round after round, and uses or skips each. In 65,535
// rounds an endpoint is used as often as its scaled weight says, evenly spread over the rounds. The
// heaviest endpoint is used in every round.
//
// An endpoint without a weight (0) gets the mean of the others. If fewer than two endpoints have a
// weight, all weigh alike, as in round_robin. Weights are limited to between a tenth of the mean
// and ten times the mean, so that a pick skips few endpoints.
//
// In slow start, the resulting weights are multiplied by factors (gRFC A100). These products have
// no limits. So while most endpoints have small factors, a pick skips more endpoints.
//
// Immutable. The caller keeps the turn, so many threads can pick without sharing memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace signalbox::lb {

class StrideScheduler {
 public:
  /// The weight of an endpoint that is used in every round.
  static constexpr std::uint32_t kFullWeight = 65'535;

  /// A place in the sequence: the endpoint to visit next, and its round.
  struct Turn {
    std::uint32_t endpoint = 0;
    std::uint32_t round = 0;

    friend bool operator==(const Turn&, const Turn&) = default;
  };

  struct Choice {
    std::size_t endpoint = 0;
    Turn next;
  };

  StrideScheduler() = default;

  /// `weights`: finite, 0 or more; 0: the endpoint has none. There is at least one entry.
  /// `factors`: one for each endpoint, above 0 and at most 1; empty: all are 1.
  explicit StrideScheduler(std::span<const double> weights, std::span<const double> factors = {});

  /// The endpoint that is used next, from `turn` on, and the turn after it. Precondition:
  /// turn.endpoint < size().
  Choice pick(Turn turn) const {
    while (!is_used(turn))
      turn = after(turn);
    return {turn.endpoint, after(turn)};
  }

  std::size_t size() const { return weights_.size(); }

  /// The scaled weight, from 1 to kFullWeight.
  std::uint32_t weight(std::size_t endpoint) const { return weights_[endpoint]; }

  /// Whether the weights of endpoints count. Else fewer than two are known, or they are too small
  /// to compute with, and all weigh alike but for the factors.
  bool has_weights() const { return has_weights_; }

  friend bool operator==(const StrideScheduler&, const StrideScheduler&) = default;

 private:
  // Each round adds the endpoint's weight to its sum. The endpoint is used in the rounds in which
  // the sum passes a multiple of kFullWeight. The sums of neighbours start half a kFullWeight
  // apart, so that neighbours do not all skip the same round.
  bool is_used(Turn turn) const {
    const std::uint64_t weight = weights_[turn.endpoint];
    const std::uint64_t offset = std::uint64_t{turn.endpoint} * (kFullWeight / 2);
    return (weight * turn.round + offset) % kFullWeight >= kFullWeight - weight;
  }

  Turn after(Turn turn) const {
    if (turn.endpoint + 1 < weights_.size()) return {turn.endpoint + 1, turn.round};
    return {0, turn.round + 1};
  }

  std::vector<std::uint16_t> weights_;
  bool has_weights_ = false;
};

}  // namespace signalbox::lb
