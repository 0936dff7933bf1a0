// SPDX-License-Identifier: Apache-2.0
//
// The demo's world, read from its resources: which clusters in which order, which backends where.
//
//   resources ─▶ [parse] ─▶ leaves, places ─▶ backends are started, on free ports
//                                                │
//   file for `signalbox serve` ◀─ [resources]
//
// Invariants
//   T1  There are exactly three leaves, and every one of them has a place.
//   T2  A backend's name is its cluster, a dash and its number within the cluster, from 1.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/resource_file.hpp"

namespace signalbox::tools {

/// Where a backend is to be started.
struct BackendPlace {
  std::string name;
  std::string cluster;
  std::string host;  ///< As the resources say: an IP address, or a name.

  friend bool operator==(const BackendPlace&, const BackendPlace&) = default;
};

/// How a backend's endpoint differs from what the resources say.
struct EndpointChange {
  enum class Kind { kNone, kDraining, kLowerPriority };

  Kind kind = Kind::kNone;
  std::string backend = {};  ///< Of an EDS cluster.
};

class DemoTopology {
 public:
  /// `file_name` is for the errors, and its ending says the format.
  static absl::StatusOr<DemoTopology> parse(absl::string_view text, absl::string_view file_name);

  const std::string& target() const { return target_; }  ///< `xds:///…`

  const std::string& aggregate() const { return aggregate_; }  ///< The cluster of clusters.

  const std::vector<std::string>& leaves() const { return leaves_; }  ///< Its clusters, best first.

  const std::vector<BackendPlace>& places() const { return places_; }

  /// Puts an IP address in the place of a host's name, in the resources too.
  void replace_host(const std::string& name, const std::string& ip);

  /// The resources as a JSON file, with the ports by backend name filled in. In the aggregate's
  /// order `first_leaf` is the first, the next the second, and so on around. One endpoint may be
  /// changed.
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
