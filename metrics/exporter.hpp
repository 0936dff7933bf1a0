// SPDX-License-Identifier: Apache-2.0
//
// Exporter — the metrics of a runtime as Prometheus reads them.
//
//   Instruments ─▶ [Exporter] ─▶ text(), which metrics_server and admin_server show
//                      └──────▶ Collect(), for an Exposer of the embedding program
//
// The exporter has no values of its own: each scrape collects them anew.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

#include "metrics/instruments.hpp"

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

}  // namespace signalbox::metrics
