// SPDX-License-Identifier: Apache-2.0
//
// resources — makes serialised xDS resources of a topology; also invalid ones, which the client
// must refuse.

#pragma once

#include <string>

#include "tests/sim/topology.hpp"

namespace signalbox::sim {

std::string listener_bytes(const TargetModel& target);
std::string route_bytes(const TargetModel& target);
std::string cluster_bytes(const std::string& name, const ClusterModel& cluster);
std::string endpoints_bytes(const std::string& name, const ClusterModel& cluster);

/// The client's node, for the first request of a stream. `zone`: empty if it has none.
std::string node_bytes(const std::string& zone);

/// A resource of this name that every client refuses.
std::string bad_listener_bytes(const std::string& name);
std::string bad_cluster_bytes(const std::string& name);
std::string bad_endpoints_bytes(const std::string& name);
std::string bad_route_bytes(const std::string& name);
/// Bytes that are no protobuf message.
std::string garbage_bytes();

}  // namespace signalbox::sim
