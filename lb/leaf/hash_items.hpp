// SPDX-License-Identifier: Apache-2.0
//
// hash_items — the endpoints of a policy as consistent hashing needs them: keys and weights.
//
//   EDS endpoints, members of the policy ─▶ [hash_items] ─▶ HashRing, MaglevTable
//
// An endpoint's key is its hash key (A76), else its first address.

#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

#include "lb/health/endpoint_weights.hpp"
#include "lb/leaf/endpoint_set.hpp"

namespace signalbox::lb {

struct HashItem {
  absl::string_view key;
  std::uint64_t weight = 1;  ///< Not 0.
};

/// A key and a weight for each member, in the order of `members`. `endpoints`: the list that the
/// members came from, which owns the keys' texts; null: none.
std::vector<HashItem> hash_items(const EndpointSet& members,
                                 const EndpointsPtr& endpoints,
                                 WeightRule rule);

}  // namespace signalbox::lb
