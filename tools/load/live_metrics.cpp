// SPDX-License-Identifier: Apache-2.0
#include "tools/load/live_metrics.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <sstream>

#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

#include "tools/load/call_code.hpp"

namespace signalbox::tools {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A side with the sum of its processes.
struct Sum {
  std::string side;
  LiveCounts counts;
  std::size_t processes = 0;  // Processes that have not ended.
};

Sum total_of(const LiveMetrics::Side& side) {
  Sum sum{.side = side.name, .counts = {}};
  for (const LiveMetrics::Side::Process& process : side.processes) {
    sum.counts.add(process.counts);
    if (process.is_alive) ++sum.processes;
  }
  return sum;
}

MetricFamily family_of(std::string name, std::string help, MetricType type) {
  MetricFamily family;
  family.name = "signalbox_load_" + std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

ClientMetric labelled(std::vector<ClientMetric::Label> labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  return metric;
}

// A family with one value for each side.
MetricFamily by_side(const std::vector<Sum>& sums,
                     std::string name,
                     std::string help,
                     MetricType type,
                     const std::function<std::uint64_t(const Sum&)>& value) {
  MetricFamily family = family_of(std::move(name), std::move(help), type);
  for (const Sum& sum : sums) {
    ClientMetric metric = labelled({{"side", sum.side}});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
        static_cast<double>(value(sum));
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// "UNAVAILABLE" of "14 UNAVAILABLE", as the code is named in signalbox's other metrics.
std::string code_label(int code) {
  const std::string text = code_text(code);
  return text.substr(text.rfind(' ') + 1);
}

MetricFamily calls(const std::vector<Sum>& sums, bool is_http) {
  MetricFamily family =
      family_of("calls_total", "Measured calls that ended, by status code.", MetricType::Counter);
  for (const Sum& sum : sums) {
    std::map<int, std::uint64_t> codes = sum.counts.codes;
    // A rate of failures needs the series of OK from the beginning.
    if (!is_http) codes.try_emplace(0, 0);
    for (const auto& [code, count] : codes) {
      ClientMetric metric = labelled({{"side", sum.side}, {"code", code_label(code)}});
      metric.counter.value = static_cast<double>(count);
      family.metric.push_back(std::move(metric));
    }
  }
  return family;
}

ClientMetric histogram(std::vector<ClientMetric::Label> labels, const LiveTimes& times) {
  ClientMetric metric = labelled(std::move(labels));
  for (std::size_t i = 0; i < times.buckets.size(); ++i) {
    metric.histogram.sample_count += times.buckets[i];
    const double bound = i < kLiveBounds.size()
                             ? std::chrono::duration<double>(kLiveBounds[i]).count()
                             : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({metric.histogram.sample_count, bound});
  }
  metric.histogram.sample_sum = static_cast<double>(times.sum_ns) / 1e9;
  return metric;
}

MetricFamily latencies(const std::vector<Sum>& sums) {
  MetricFamily family =
      family_of("latency_seconds",
                "Time from when a call was due until it ended, by whether it ended OK.",
                MetricType::Histogram);
  for (const Sum& sum : sums) {
    family.metric.push_back(histogram({{"side", sum.side}, {"result", "ok"}}, sum.counts.ok));
    family.metric.push_back(
        histogram({{"side", sum.side}, {"result", "failed"}}, sum.counts.failed));
  }
  return family;
}

MetricFamily latenesses(const std::vector<Sum>& sums) {
  MetricFamily family = family_of("lateness_seconds",
                                  "Time from when a call was due until it was sent.",
                                  MetricType::Histogram);
  for (const Sum& sum : sums)
    family.metric.push_back(histogram({{"side", sum.side}}, sum.counts.lateness));
  return family;
}

}  // namespace

LiveMetrics::LiveMetrics(const std::vector<std::string>& sides, std::size_t processes, bool is_http)
    : is_http_(is_http) {
  for (const std::string& side : sides)
    sides_.push_back({.name = side, .processes = std::vector<Side::Process>(processes)});
}

void LiveMetrics::set(std::size_t side, std::size_t process, LiveCounts counts) {
  const std::lock_guard lock(mutex_);
  sides_[side].processes[process].counts = std::move(counts);
}

void LiveMetrics::ended(std::size_t side, std::size_t process) {
  const std::lock_guard lock(mutex_);
  sides_[side].processes[process].is_alive = false;
}

void LiveMetrics::act_was_done(std::string name, bool is_fault, double unix_seconds) {
  const std::lock_guard lock(mutex_);
  acts_.push_back({std::move(name), is_fault, unix_seconds});
}

std::string LiveMetrics::text() const {
  std::vector<Sum> sums;
  MetricFamily acts = family_of("act_timestamp_seconds",
                                "Unix time at which an act of the script was done.",
                                MetricType::Gauge);
  {
    const std::lock_guard lock(mutex_);
    for (const Side& side : sides_)
      sums.push_back(total_of(side));
    for (const Act& act : acts_) {
      ClientMetric metric =
          labelled({{"act", act.name}, {"is_fault", act.is_fault ? "true" : "false"}});
      metric.gauge.value = act.unix_seconds;
      acts.metric.push_back(std::move(metric));
    }
  }
  std::vector<MetricFamily> families{
      calls(sums, is_http_),
      by_side(sums,
              "scheduled_total",
              "Measured calls that have been due.",
              MetricType::Counter,
              [](const Sum& sum) { return sum.counts.scheduled; }),
      by_side(sums,
              "sent_total",
              "Measured calls that were sent.",
              MetricType::Counter,
              [](const Sum& sum) { return sum.counts.sent; }),
      by_side(sums,
              "dropped_total",
              "Measured calls that were due and not sent: too many were in flight, or their "
              "timeout had passed.",
              MetricType::Counter,
              [](const Sum& sum) { return sum.counts.dropped; }),
      by_side(sums,
              "in_flight",
              "Measured calls that were sent and have not ended.",
              MetricType::Gauge,
              [](const Sum& sum) { return sum.counts.in_flight(); }),
      by_side(sums,
              "processes",
              "Processes that have not ended.",
              MetricType::Gauge,
              [](const Sum& sum) { return static_cast<std::uint64_t>(sum.processes); }),
      latencies(sums),
      latenesses(sums)};
  if (!acts.metric.empty()) families.push_back(std::move(acts));
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace signalbox::tools
