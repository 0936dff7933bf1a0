// SPDX-License-Identifier: Apache-2.0
#include "lb/route/timeout.hpp"

#include <algorithm>

namespace signalbox::lb {

std::optional<Duration> effective_max_stream_duration(std::optional<Duration> of_route,
                                                      std::optional<Duration> of_listener) {
  return of_route ? of_route : of_listener;
}

std::optional<Duration> effective_timeout(std::optional<Duration> application,
                                          std::optional<Duration> header_max,
                                          std::optional<Duration> max_stream_duration) {
  // A31: max_stream_duration counts only where grpc_timeout_header_max is not set at all.
  const std::optional<Duration> cap = header_max ? header_max : max_stream_duration;
  if (!cap || *cap == Duration::zero()) return application;
  return application ? std::min(*application, *cap) : *cap;
}

}  // namespace signalbox::lb
