// SPDX-License-Identifier: Apache-2.0
//
// EndpointTrackers — counts calls by endpoint, when the program wants metrics in that detail.
//
//   cluster_impl: endpoints ─▶ [EndpointTrackers] ─▶ picker: complete ─▶ tracker of the address
//                                                                         └▶ EndpointCalls
//
// Immutable. If the program does not want that detail, there are neither trackers nor their picker,
// and calls pay nothing for it.

#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"

#include "messages/counting/call_tracker.hpp"
#include "messages/counting/endpoint_calls.hpp"
#include "messages/counting/tracked.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

class EndpointTrackers {
 public:
  /// `endpoints`: null means no endpoints. `before`: earlier trackers of the same cluster, which
  /// are used again for endpoints that stay; null: there are none.
  EndpointTrackers(const ClusterName& cluster,
                   const EndpointsPtr& endpoints,
                   EndpointCounters& counters,
                   const std::shared_ptr<Retirement>& retirement,
                   const EndpointTrackers* before);

  /// The tracker for calls to `address`. Addresses without their own tracker, such as that of an
  /// endpoint that left the configuration, share one tracker (others_).
  const CallTracker& of(const Address& address) const {
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? *others_ : *found->second;
  }

 private:
  absl::flat_hash_map<Address, CallTrackerPtr> by_address_;
  CallTrackerPtr others_;
};

using EndpointTrackersPtr = std::shared_ptr<const EndpointTrackers>;

/// Picks as `child` does, and adds the address's tracker to each pick with a connection.
PickerPtr make_endpoint_counting_picker(PickerPtr child, EndpointTrackersPtr trackers);

}  // namespace signalbox::lb
