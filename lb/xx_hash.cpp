// SPDX-License-Identifier: Apache-2.0
#include "lb/xx_hash.hpp"

#include <xxhash.h>

namespace signalbox::lb {

std::uint64_t xx_hash(absl::string_view text, std::uint64_t seed) {
  return XXH64(text.data(), text.size(), seed);
}

}  // namespace signalbox::lb
