// SPDX-License-Identifier: Apache-2.0
#include "lb/xx_hash.hpp"

#include <xxhash.h>

namespace signalbox::lb {

std::uint64_t xx_hash(absl::string_view text) {
  return XXH64(text.data(), text.size(), 0);
}

}  // namespace signalbox::lb
