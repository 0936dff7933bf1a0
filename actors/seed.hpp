// SPDX-License-Identifier: Apache-2.0
//
// seed_of — derives the seeds of cores from the runtime's seed. A core's name and a number, such as
// a count of its actor's starts, make its seed independent of other seeds. Equal arguments give the
// same seed in every process (FNV-1a).

#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace signalbox::actors {

inline std::uint64_t seed_of(std::uint64_t seed, absl::string_view what, std::uint64_t number = 0) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  const auto mix = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  for (const char c : what)
    mix(static_cast<unsigned char>(c));
  for (int i = 0; i < 8; ++i)
    mix((number >> (8 * i)) & 0xffU);
  return hash;
}

}  // namespace signalbox::actors
