// SPDX-License-Identifier: Apache-2.0
#include "xds/client/backoff.hpp"

namespace signalbox::xds {
namespace {

// One step of splitmix64, as a number in [0, 1).
std::uint64_t draw(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace

Backoff::Backoff(const BackoffOptions& options, std::uint64_t seed)
    : options_(options), chance_(seed), base_(options.initial) {}

Duration Backoff::next() {
  const Duration wait = jittered(base_, options_.jitter, chance_of(draw(chance_)));
  base_ = longer_wait(base_, options_.multiplier, options_.max);
  return wait;
}

void Backoff::reset() {
  base_ = options_.initial;
}

}  // namespace signalbox::xds
