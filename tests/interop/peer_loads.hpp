// SPDX-License-Identifier: Apache-2.0
//
// The load reports (LRS) that the independent control plane got, and their sums.
//
//   Runtime ─ LRS ─▶ control_plane (Go) ─ JSON ─▶ load_request_of() ─▶ Wire ─▶ [books_of()]
//
// The Go program decodes the reports with the stubs of go-control-plane, and adds up nothing.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace signalbox::test {

/// The node of a request.
struct PeerNode {
  std::string id;
  std::string agent;
  std::set<std::string> features;
};

/// The LoadStatsResponse that the peer sends.
struct LoadAnswer {
  std::vector<std::string> clusters = {};
  bool all_clusters = false;
  std::chrono::milliseconds interval = std::chrono::seconds(1);
};

/// The calls in a report, or in several reports.
struct LoadSums {
  std::uint64_t issued = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;

  LoadSums& operator+=(const LoadSums& other);
  friend bool operator==(const LoadSums&, const LoadSums&) = default;
};

/// A LoadStatsRequest that the peer read.
struct LoadRequest {
  struct Locality {
    std::string name;  ///< region/zone/sub_zone
    LoadSums calls;
    std::uint64_t in_progress = 0;
    std::map<std::string, double> metrics;  ///< The sums of named metrics.
  };

  struct Cluster {
    std::string name;
    std::string service;
    std::chrono::milliseconds interval{};
    std::map<std::string, std::uint64_t> drops;  ///< By category. Key "": all drops.
    std::vector<Locality> localities;
  };

  int stream = 0;
  std::optional<PeerNode> node;
  std::vector<Cluster> clusters;
  bool ends_stream = false;  ///< Whether the peer cut the stream because of this request.

  /// The calls of all clusters and localities.
  LoadSums calls() const;
};

/// Cluster, EDS service, locality.
using LoadKey = std::tuple<std::string, std::string, std::string>;

/// The sums over all requests.
std::map<LoadKey, LoadSums> books_of(const std::vector<LoadRequest>& requests);
LoadSums calls_of(const std::vector<LoadRequest>& requests);

/// Reads `node` of an event, if the event has one.
std::optional<PeerNode> node_of(const nlohmann::json& event);
/// Reads an event "load_request".
LoadRequest load_request_of(const nlohmann::json& event);

/// A line for each cluster and locality of each request.
std::string to_string(const std::vector<LoadRequest>& requests);

}  // namespace signalbox::test
