// SPDX-License-Identifier: Apache-2.0
//
// The demo's clusters and backends, read from its resources.
//
//   resources ─▶ [parse] ─▶ leaves, places ─▶ backends are started, on free ports
//                                                                     │
//   file for `signalbox serve` ◀─ [resources] ◀───────────────────────┘
//
// Invariants
//   T1  There are exactly three leaves, and every leaf has a place.
//   T2  A backend's name is its cluster, a dash and its number within the cluster, from 1.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/resource_file.hpp"

namespace signalbox::tools {

/// A backend of the demo, and the host on which it is started.
struct BackendPlace {
  std::string name;
  std::string cluster;
  std::string host;  ///< As in the resources: an IP address, or a name.

  friend bool operator==(const BackendPlace&, const BackendPlace&) = default;
};

/// A change that resources() makes to the endpoint of one backend.
struct EndpointChange {
  enum class Kind { kNone, kDraining, kLowerPriority };

  Kind kind = Kind::kNone;
  std::string backend = {};  ///< The backend's name; its cluster is an EDS cluster.
};

class DemoTopology {
 public:
  /// Errors name `file_name`; its extension gives the format.
  static absl::StatusOr<DemoTopology> parse(absl::string_view text, absl::string_view file_name);

  const std::string& target() const { return target_; }  ///< `xds:///…`

  const std::string& aggregate() const { return aggregate_; }  ///< The aggregate cluster.

  /// The aggregate's clusters, best first.
  const std::vector<std::string>& leaves() const { return leaves_; }

  const std::vector<BackendPlace>& places() const { return places_; }

  /// Replaces a host's name with an IP address, in places() and resources().
  void replace_host(const std::string& name, const std::string& ip);

  /// The resources as JSON text, with each backend's port from `ports` (by backend name). The
  /// aggregate's list is rotated so that leaf number `first_leaf` comes first. `change` may change
  /// one endpoint.
  absl::StatusOr<std::string> resources(const std::map<std::string, int>& ports,
                                        std::size_t first_leaf = 0,
                                        const EndpointChange& change = {}) const;

 private:
  std::vector<xds::ResourceBytes> resources_;
  std::string target_;
  std::string aggregate_;
  std::vector<std::string> leaves_;
  std::vector<BackendPlace> places_;
};

}  // namespace signalbox::tools
