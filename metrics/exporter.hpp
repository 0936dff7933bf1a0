// SPDX-License-Identifier: Apache-2.0
//
// Exporter — the metrics of a runtime as Prometheus reads them.
//
//   Instruments ─▶ [Exporter] ─▶ text(), which metrics_server and admin_server show
//                      └──────▶ Collect(), for an Exposer of the embedding program
//
// The exporter stores no values: each scrape collects them anew. Only text() has the metrics of the
// process (CPU time, memory). Collect() leaves them out, because the embedding program may have
// them already, and because a program with two runtimes would have them twice.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

#include "messages/process_facts.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::metrics {

class Exporter final : public prometheus::Collectable {
 public:
  using Process = std::function<ProcessFacts()>;

  /// `process` returns the facts about the process; text() calls it. Null: text() leaves out the
  /// metrics of the process.
  explicit Exporter(std::shared_ptr<const Instruments> instruments, Process process = nullptr)
      : instruments_(std::move(instruments)), process_(std::move(process)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

  /// The text exposition format, as at /metrics, with the metrics of the process.
  std::string text() const;

 private:
  const std::shared_ptr<const Instruments> instruments_;
  const Process process_;
};

}  // namespace signalbox::metrics
