// SPDX-License-Identifier: Apache-2.0
//
// places — which cluster and priority an address belongs to, by the status of a runtime.
//
//   RuntimeStatus ─▶ [places_of] ─▶ address ─▶ RankedPlace ─▶ LoadRecorder::place
//
// Clusters of an aggregate are ranked by their order in it, and within a cluster by priority. An
// address that stands in several places counts for the best one.

#pragma once

#include <map>
#include <string>

#include "signalbox/runtime_status.hpp"
#include "tools/load/recorder.hpp"

namespace signalbox::tools {

std::map<std::string, RankedPlace> places_of(const RuntimeStatus& status,
                                             const std::string& target);

/// "127.0.0.1:40001" of gRPC's "ipv4:127.0.0.1:40001"; empty: the peer is no endpoint.
std::string address_of_peer(const std::string& peer);

}  // namespace signalbox::tools
