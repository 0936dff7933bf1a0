// SPDX-License-Identifier: Apache-2.0
//
// Exporter — the metrics of a runtime as Prometheus reads them; serve_metrics — its HTTP page.
//
//   Instruments ─▶ [Exporter] ─▶ text(), or an Exposer of the embedding server
//                      └──────▶ serve_metrics("127.0.0.1:9090") ─▶ GET /metrics
//
// Nothing is kept between scrapes. Exceptions of the HTTP library end here.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

#include "metrics/instruments.hpp"

namespace prometheus {
class Exposer;
}  // namespace prometheus

namespace signalbox::metrics {

class Exporter final : public prometheus::Collectable {
 public:
  explicit Exporter(std::shared_ptr<const Instruments> instruments)
      : instruments_(std::move(instruments)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

  /// The text exposition format, as at /metrics.
  std::string text() const;

 private:
  std::shared_ptr<const Instruments> instruments_;
};

/// Serves until it is destroyed, which may take the HTTP library two seconds.
class MetricsServer {
 public:
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// The port that is listened on, also where 0 was asked for.
  int port() const { return port_; }

 private:
  friend absl::StatusOr<std::unique_ptr<MetricsServer>> serve_metrics(
      const std::string& address, std::shared_ptr<Exporter> exporter);

  MetricsServer(std::shared_ptr<Exporter> exporter, std::unique_ptr<prometheus::Exposer> exposer);

  std::shared_ptr<Exporter> exporter_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  int port_ = 0;
};

/// Serves /metrics on "host:port"; port 0 takes a free one. UNAVAILABLE if it cannot listen there.
absl::StatusOr<std::unique_ptr<MetricsServer>> serve_metrics(const std::string& address,
                                                             std::shared_ptr<Exporter> exporter);

}  // namespace signalbox::metrics
