// SPDX-License-Identifier: Apache-2.0
//
// XdsWorld — a short notation for a control plane's configuration.
//
//   world.eds("orders", {"east:a,b west:c", "north:d"}) ─▶ config() ─▶ XdsConfig
//
// Each priority is one string. In it a locality is zone:endpoint,endpoint, or zone*3:endpoint for a
// locality of weight 3. An endpoint that ends in "!" is DRAINING, in "?" DEGRADED, in "-"
// UNHEALTHY. An endpoint with several addresses has "+" between them. An endpoint's weight follows
// "=", before its health. Equal localities keep their pointers, and so do clusters that no function
// has set again (XdsConfig's X3).

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "messages/xds_config.hpp"

namespace signalbox::test {

/// wrr_locality over round_robin: the default policy of a cluster here.
LbConfigPtr default_lb_policy();

/// Settings of a cluster that most tests leave at these defaults.
struct ClusterExtras {
  std::optional<OutlierDetection> outlier_detection = std::nullopt;
  std::uint32_t max_concurrent_requests = 1024;
  std::vector<DropCategory> drops = {};
  Duration idle_timeout = std::chrono::hours(1);
  HealthStatusSet override_host_status{HealthStatus::kUnknown, HealthStatus::kHealthy};
  std::uint32_t overprovisioning_percent = 140;
  bool weighted_priority_health = false;
  /// nullopt: CDS does not set it.
  std::optional<Duration> connect_timeout = std::nullopt;
};

class XdsWorld {
 public:
  using Priorities = std::vector<std::string>;

  void eds(const std::string& cluster,
           const Priorities& priorities,
           const LbConfigPtr& lb_policy = default_lb_policy(),
           const ClusterExtras& extras = {});

  /// An EDS cluster before its endpoints are known.
  void eds_unresolved(const std::string& cluster, const std::string& resolution_note);

  void dns(const std::string& cluster, const std::string& address);

  void aggregate(const std::string& cluster,
                 const std::vector<std::string>& leaves,
                 std::optional<AggregateMode> mode = std::nullopt,
                 std::optional<std::uint32_t> panic_threshold = std::nullopt);

  void error(const std::string& cluster, absl::Status status);

  void remove(const std::string& cluster);

  /// Switches sessions on or off: the listener's chain gets or loses the filter stateful_session.
  void sessions(bool on);

  XdsConfigPtr config() const;

 private:
  void put(Cluster cluster, std::variant<LeafEndpoints, AggregateLeaves> children);
  Priority parse(const std::string& text);
  LocalityPtr share(Locality locality);

  std::map<ClusterName, absl::StatusOr<ClusterConfigPtr>> clusters_;
  std::shared_ptr<const Listener> listener_;
  std::vector<LocalityPtr> localities_;  ///< All localities of all configurations so far.
};

/// A cluster_manager with one child cds for each of `clusters` and of `retiring`. No route can
/// choose the clusters in `retiring` any more: only earlier calls hold them (A31-14).
LbConfigPtr manager_of(const std::vector<std::string>& clusters,
                       const std::vector<std::string>& retiring = {});

}  // namespace signalbox::test
