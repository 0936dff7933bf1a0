// SPDX-License-Identifier: Apache-2.0
//
// kCentury — the longest duration of a configuration and of options. Duration ends after some 292
// years, and sums with an Instant must not overflow.

#pragma once

#include <chrono>

namespace signalbox {

constexpr std::chrono::hours kCentury{24 * 36'525};

}  // namespace signalbox
