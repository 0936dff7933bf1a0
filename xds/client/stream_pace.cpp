// SPDX-License-Identifier: Apache-2.0
#include "xds/client/stream_pace.hpp"

#include <algorithm>

namespace signalbox::xds {

StreamPace::StreamPace(const StreamPaceOptions& options, std::uint64_t seed)
    : options_(options), failures_(options.backoff, seed), short_lived_(options.backoff, ~seed) {}

void StreamPace::opened(Instant now) {
  opened_ = now;
  answered_ = false;
}

void StreamPace::answered() {
  answered_ = true;
  failures_.reset();
}

Duration StreamPace::closed(Ending ending, Instant now) {
  const Duration apart = std::max(opened_ + options_.min_interval - now, Duration::zero());
  if (ending == Ending::kUnneeded) return apart;
  const bool lasted = answered_ && ending == Ending::kByServer && now - opened_ >= options_.lasting;
  if (lasted) {
    short_lived_.reset();
    return apart;
  }
  const bool failed = !answered_ && ending == Ending::kByServer;
  const Duration wait = failed ? failures_.next() : short_lived_.next();
  return std::max(wait, apart);
}

}  // namespace signalbox::xds
