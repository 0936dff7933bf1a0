// SPDX-License-Identifier: Apache-2.0
//
// Times GET /metrics over loopback, for the metrics of 100 clusters of 100 endpoints.
//
//   large_metrics ─▶ exporter ─▶ MetricsServer ─▶ admin_ask(): the time until the page is there
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "channel/admin/metrics_server.hpp"
#include "metrics/exporter.hpp"
#include "tests/bench/measures.hpp"
#include "tests/bench/percentiles.hpp"
#include "tests/support/large_metrics.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::bench {

Measured measure_scrape(const MeasureOptions& options, Side& /*side*/) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto made = testing::large_metrics(
      /*targets=*/1, /*clusters=*/100, /*endpoints=*/100, metrics::LatencyScale::kShort);
  const metrics::Exporter exporter(made.instruments);
  const auto server =
      channel::MetricsServer::start("127.0.0.1:0", [&exporter] { return exporter.text(); });
  if (!server.ok()) return server.status();
  const channel::AdminAddress address =
      channel::LoopbackAddress{"127.0.0.1", static_cast<std::uint16_t>((*server)->port())};

  std::vector<double> took;
  std::size_t bytes = 0;
  const auto end = Clock::now() + options.length;
  do {
    const auto begun = Clock::now();
    const auto page = tools::admin_ask(address, "/metrics");
    took.push_back(Milliseconds(Clock::now() - begun).count());
    if (!page.ok()) return page.status();
    if (page->code != 200) return absl::InternalError(absl::StrCat("/metrics: HTTP ", page->code));
    bytes = page->body.size();
  } while (Clock::now() < end);
  return nlohmann::json{{"scrape_ms", percentile(took, 50)},
                        {"p99_ms", percentile(took, 99)},
                        {"megabytes", static_cast<double>(bytes) / 1e6}};
}

}  // namespace signalbox::bench
