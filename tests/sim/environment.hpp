// SPDX-License-Identifier: Apache-2.0
//
// environment — the Environment of a world's actors, made of the fakes of its Setting.

#pragma once

#include <cstdint>

#include "actors/environment.hpp"
#include "tests/sim/setting.hpp"

namespace signalbox::sim {

/// What the actors of all worlds have: the fakes for connections, load streams, look-ups and
/// retired objects; a decoder that decodes a response at once; metrics and request limits of their
/// own. No control plane and no health prober. The Setting's fakes must outlive the actors.
actors::Environment environment_of(const Setting& setting, std::uint64_t seed);

}  // namespace signalbox::sim
