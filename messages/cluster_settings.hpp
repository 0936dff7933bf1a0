// SPDX-License-Identifier: Apache-2.0
//
// The settings of a cluster beside its discovery and its LB policy, one struct per concern.
//
//   xds/parse/{outlier_detection,tls,…} ─▶ [these] ─▶ Cluster ─▶ lb/tree/cluster_tree, transports
//
// Defaults are those of the gRFCs, and Envoy's for health checks. Percentages are at most 100.
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

/// The most calls of a cluster in flight, when its circuit_breakers set no limit (A32).
inline constexpr std::uint32_t kDefaultMaxRequests = 1024;

/// Rules for the ejection of endpoints that fail more calls than others (A50). If neither
/// success_rate nor failure_percentage is set, all ejected endpoints return, no timer runs, and no
/// call is counted.
struct OutlierDetection {
  /// Ejects endpoints with a success rate far below that of the other endpoints.
  struct SuccessRate {
    std::uint32_t stdev_factor = 1900;  ///< Thousandths of a standard deviation.
    std::uint32_t enforcement_percent = 100;
    std::uint32_t minimum_hosts = 5;
    std::uint32_t request_volume = 100;

    friend bool operator==(const SuccessRate&, const SuccessRate&) = default;
  };

  /// Ejects endpoints that fail more than threshold_percent of their calls.
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
  /// In percent of the endpoints: another endpoint may be ejected while the ejected share is below
  /// this limit, or while none is ejected. See may_eject() in lb/tree/outlier_rules.hpp.
  std::uint32_t max_ejection_percent = 10;
  std::optional<SuccessRate> success_rate;
  std::optional<FailurePercentage> failure_percentage;

  friend bool operator==(const OutlierDetection&, const OutlierDetection&) = default;
};

/// How an endpoint is probed (CDS health_checks). An endpoint without calls is probed too.
struct HealthCheck {
  /// grpc.health.v1.Health/Check. The endpoint is healthy when it answers SERVING.
  struct Grpc {
    std::string service_name;  ///< Empty: the server as a whole.
    /// The :authority of the probe. Empty: the probe has the cluster's name, or the connection's
    /// authority if that name is not printable ASCII.
    std::string authority;

    friend bool operator==(const Grpc&, const Grpc&) = default;
  };

  /// A GET over HTTP/1.1. The endpoint is healthy when the status is in one of the `expected`
  /// ranges.
  struct Http {
    /// A half-open range: [begin, end).
    struct Statuses {
      std::uint32_t begin = 200;
      std::uint32_t end = 201;

      friend bool operator==(const Statuses&, const Statuses&) = default;
    };

    /// The Host header of the probe. Empty: the probe has the cluster's name, or the endpoint's
    /// address if that name is not printable ASCII.
    std::string host;
    std::string path;  ///< With its query. Never empty.
    std::vector<Statuses> expected = {Statuses{}};
    /// Unexpected statuses that count towards unhealthy_threshold. Any other unexpected status
    /// makes the endpoint unhealthy at once.
    std::vector<Statuses> retriable = {};

    friend bool operator==(const Http&, const Http&) = default;
  };

  /// Connects, sends `send` unless it is empty, then must receive the texts of `receive` in order.
  struct Tcp {
    std::string send;                  ///< Bytes.
    std::vector<std::string> receive;  ///< Bytes; empty: a connection is enough.

    friend bool operator==(const Tcp&, const Tcp&) = default;
  };

  std::variant<Grpc, Http, Tcp> probe;
  Duration timeout{};          ///< For one probe; greater than 0.
  Duration interval{};         ///< From the end of a probe to the next; above 0.
  Duration initial_jitter{};   ///< The first probe waits up to this long.
  Duration interval_jitter{};  ///< Each interval is longer by up to this time.
  /// Each interval is longer by a random part of the interval, up to this percentage.
  std::uint32_t interval_jitter_percent = 0;
  /// After this number of failed probes in a row the endpoint is unhealthy, and policies treat it
  /// like an ejected endpoint; at least 1. One failure is enough for the first probe. One answer
  /// that says "unhealthy" (ProbeOutcome::kRefused) is always enough.
  std::uint32_t unhealthy_threshold = 1;
  /// After this number of passed probes in a row the endpoint is healthy again; at least 1. One
  /// success is enough for the first probe.
  std::uint32_t healthy_threshold = 1;

  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

using HealthChecksPtr = std::shared_ptr<const std::vector<HealthCheck>>;

/// Whether `left` and `right` contain equal health checks.
inline bool same_checks(const HealthChecksPtr& left, const HealthChecksPtr& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

/// Certificates, named by an instance in the bootstrap's certificate_providers (A29).
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

/// How the cluster's connections are secured (A29). A connection that carries data uses exactly
/// these settings, or is not made. RuntimeOptions::channel_credentials serve only clusters without
/// these settings.
struct UpstreamTls {
  std::variant<CertificateProvider, SystemRoots> roots;
  /// Signalbox's own certificate; nullopt: signalbox presents no certificate.
  std::optional<CertificateProvider> identity;
  /// One of the server's names must match one of these matchers. Empty: names are not checked.
  std::vector<TextMatcher> subject_alt_names;

  friend bool operator==(const UpstreamTls&, const UpstreamTls&) = default;
  friend auto operator<=>(const UpstreamTls&, const UpstreamTls&) = default;
};

/// Shared by all subchannels of a cluster. Null: CDS has no security settings.
using UpstreamTlsPtr = std::shared_ptr<const UpstreamTls>;

/// Whether a connection that was made with the settings `left` may be used where `right` is
/// required.
inline bool same_tls(const UpstreamTlsPtr& left, const UpstreamTlsPtr& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

}  // namespace signalbox
