// SPDX-License-Identifier: Apache-2.0
//
// resources — the model of the world as real xDS bytes, good ones and bad ones.

#pragma once

#include <string>

#include "tests/sim/topology.hpp"

namespace signalbox::sim {

std::string listener_bytes(const TargetModel& target);
std::string route_bytes(const TargetModel& target);
std::string cluster_bytes(const std::string& name, const ClusterModel& cluster);
std::string endpoints_bytes(const std::string& name, const ClusterModel& cluster);

/// Who we are, for the first request of a stream.
std::string node_bytes();

/// Named so, and refused by every client.
std::string bad_listener_bytes(const std::string& name);
std::string bad_cluster_bytes(const std::string& name);
std::string bad_endpoints_bytes(const std::string& name);
std::string bad_route_bytes(const std::string& name);
/// No protobuf message at all.
std::string garbage_bytes();

}  // namespace signalbox::sim
