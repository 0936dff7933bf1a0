// SPDX-License-Identifier: Apache-2.0
//
// What a cluster is told beside its discovery and its LB policy, one struct per concern.
//
//   xds/parse/{outlier_detection,tls,…} ─▶ [these] ─▶ Cluster ─▶ lb/cluster_tree, transports
//
// Defaults are the gRFCs'. Percentages are at most 100.
// Source: gRFC A50 (outlier detection), A29 (TLS).

#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/ids.hpp"
#include "messages/text_matcher.hpp"

namespace signalbox {

/// When an endpoint that answers badly is set aside (A50). With neither algorithm, none ever is:
/// all that were come back, there is no timer, and no call is counted.
struct OutlierDetection {
  /// Ejects those whose success rate is far below the others'.
  struct SuccessRate {
    std::uint32_t stdev_factor = 1900;  ///< In thousandths.
    std::uint32_t enforcement_percent = 100;
    std::uint32_t minimum_hosts = 5;
    std::uint32_t request_volume = 100;

    friend bool operator==(const SuccessRate&, const SuccessRate&) = default;
  };

  /// Ejects those that fail more than a share of their calls.
  struct FailurePercentage {
    std::uint32_t threshold_percent = 85;
    std::uint32_t enforcement_percent = 0;
    std::uint32_t minimum_hosts = 5;
    std::uint32_t request_volume = 50;

    friend bool operator==(const FailurePercentage&, const FailurePercentage&) = default;
  };

  Duration interval = std::chrono::seconds(10);
  Duration base_ejection_time = std::chrono::seconds(30);
  Duration max_ejection_time = std::chrono::seconds(300);  ///< At least base_ejection_time.
  std::uint32_t max_ejection_percent = 10;  ///< One endpoint may be ejected whatever this says.
  std::optional<SuccessRate> success_rate;
  std::optional<FailurePercentage> failure_percentage;

  friend bool operator==(const OutlierDetection&, const OutlierDetection&) = default;
};

/// Certificates by the name of an instance in the bootstrap's certificate_providers (A29).
struct CertificateProvider {
  std::string instance_name;
  std::string certificate_name;

  friend bool operator==(const CertificateProvider&, const CertificateProvider&) = default;
  friend auto operator<=>(const CertificateProvider&, const CertificateProvider&) = default;
};

/// The roots that the system trusts (A82).
struct SystemRoots {
  friend bool operator==(const SystemRoots&, const SystemRoots&) = default;
  friend auto operator<=>(const SystemRoots&, const SystemRoots&) = default;
};

/// How connections of the cluster are secured (A29): whoever connects uses exactly this, or does
/// not connect. Fallback credentials are for clusters without one alone.
struct UpstreamTls {
  std::variant<CertificateProvider, SystemRoots> roots;
  /// Our own certificate; nullopt: none is shown.
  std::optional<CertificateProvider> identity;
  /// One of the server's names must match one of these; empty: none is asked for.
  std::vector<TextMatcher> subject_alt_names;

  friend bool operator==(const UpstreamTls&, const UpstreamTls&) = default;
  friend auto operator<=>(const UpstreamTls&, const UpstreamTls&) = default;
};

/// Shared by all subchannels of a cluster. Null: the control plane says nothing of security.
using UpstreamTlsPtr = std::shared_ptr<const UpstreamTls>;

/// Whether a connection that was made for one may serve the other.
inline bool same_tls(const UpstreamTlsPtr& left, const UpstreamTlsPtr& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

}  // namespace signalbox
