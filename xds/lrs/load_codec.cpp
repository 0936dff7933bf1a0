// SPDX-License-Identifier: Apache-2.0
#include "xds/lrs/load_codec.hpp"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"
#include "xds/parse/well_known.hpp"
#include "xds/utf8.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

namespace endpoint = envoy::config::endpoint::v3;
using envoy::service::load_stats::v3::LoadStatsRequest;
using envoy::service::load_stats::v3::LoadStatsResponse;

constexpr std::int64_t kNanos = 1'000'000'000;

void write(const MetricSum& sum,
           endpoint::UnnamedEndpointLoadMetricStats* (*to)(endpoint::UpstreamLocalityStats&),
           endpoint::UpstreamLocalityStats& stats) {
  if (sum.calls == 0) return;
  auto* const metric = to(stats);
  metric->set_num_requests_finished_with_metric(sum.calls);
  metric->set_total_metric_value(sum.total);
}

void write(const LocalityLoad& load, endpoint::UpstreamLocalityStats& stats) {
  stats.mutable_locality()->set_region(load.locality.region);
  stats.mutable_locality()->set_zone(load.locality.zone);
  stats.mutable_locality()->set_sub_zone(load.locality.sub_zone);
  stats.set_total_issued_requests(load.issued);
  stats.set_total_successful_requests(load.succeeded);
  stats.set_total_error_requests(load.failed);
  stats.set_total_requests_in_progress(load.in_progress);
  using Stats = endpoint::UpstreamLocalityStats;
  write(load.cpu_utilization, [](Stats& s) { return s.mutable_cpu_utilization(); }, stats);
  write(load.mem_utilization, [](Stats& s) { return s.mutable_mem_utilization(); }, stats);
  write(
      load.application_utilization,
      [](Stats& s) { return s.mutable_application_utilization(); },
      stats);
  for (const auto& [name, sum] : load.named) {
    endpoint::EndpointLoadMetricStats& metric = *stats.add_load_metric_stats();
    // Endpoints choose the names, so a name need not be UTF-8, which protobuf demands.
    metric.set_metric_name(as_utf8(name));
    metric.set_num_requests_finished_with_metric(sum.calls);
    metric.set_total_metric_value(sum.total);
  }
}

void write(const ClusterLoad& load, endpoint::ClusterStats& stats) {
  stats.set_cluster_name(load.cluster.str());
  stats.set_cluster_service_name(load.service);
  stats.mutable_load_report_interval()->set_seconds(load.interval.count() / kNanos);
  stats.mutable_load_report_interval()->set_nanos(
      static_cast<std::int32_t>(load.interval.count() % kNanos));
  std::uint64_t dropped = load.breaker_drops;
  for (const auto& [category, count] : load.drops) {
    endpoint::ClusterStats::DroppedRequests& drops = *stats.add_dropped_requests();
    drops.set_category(category);
    drops.set_dropped_count(count);
    dropped += count;
  }
  stats.set_total_dropped_requests(dropped);
  for (const LocalityLoad& locality : load.localities)
    write(locality, *stats.add_upstream_locality_stats());
}

// Refuses a response with more than kMostLoadClusters names. Decoded names can take much more
// memory than their bytes, so they are counted before the response is decoded.
absl::Status check_size(absl::string_view bytes) {
  WireReader reader(bytes);
  std::size_t names = 0;
  while (const auto value = reader.next()) {
    if (value->field == LoadStatsResponse::kClustersFieldNumber) ++names;
  }
  if (names <= kMostLoadClusters) return {};
  return absl::ResourceExhaustedError(absl::StrCat("a LoadStatsResponse names ",
                                                   names,
                                                   " clusters, at most ",
                                                   kMostLoadClusters,
                                                   " are possible: have the server set "
                                                   "send_all_clusters"));
}

// The interval that the server asks for, which the caller limits. Its seconds are clamped to twice
// kLongestInterval, positive or negative, so that the conversion cannot overflow.
Duration interval_of(const LoadStatsResponse& message) {
  const auto& asked = message.load_reporting_interval();
  constexpr std::int64_t most = 2 * (kLongestInterval / std::chrono::seconds(1));
  const std::int64_t seconds = std::clamp<std::int64_t>(asked.seconds(), -most, most);
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(asked.nanos());
}

std::string in_seconds(const ::google::protobuf::Duration& duration) {
  const double seconds =
      static_cast<double>(duration.seconds()) + static_cast<double>(duration.nanos()) * 1e-9;
  return absl::StrFormat("%.9g s", seconds);
}

}  // namespace

std::string encode_first_load_request(absl::string_view node) {
  LoadStatsRequest request;
  const bool parsed = request.mutable_node()->ParseFromString(std::string(node));
  SIGNALBOX_INVARIANT(parsed, "the session is given a serialised node");
  request.mutable_node()->add_client_features("envoy.lrs.supports_send_all_clusters");
  return request.SerializeAsString();
}

std::string encode_load_request(const std::vector<ClusterLoad>& clusters) {
  LoadStatsRequest request;
  for (const ClusterLoad& load : clusters)
    write(load, *request.add_cluster_stats());
  return request.SerializeAsString();
}

absl::StatusOr<DecodedLoadOrder> decode_load_response(absl::string_view bytes) {
  if (absl::Status size = check_size(bytes); !size.ok()) return size;
  LoadStatsResponse message;
  if (!decode(bytes, message)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server's message is no LoadStatsResponse (", bytes.size(), " bytes)"));
  }
  DecodedLoadOrder decoded;
  LoadOrder& order = decoded.order;
  order.selection.all = message.send_all_clusters();
  if (!order.selection.all)
    order.selection.clusters.insert(message.clusters().begin(), message.clusters().end());
  const Duration asked = interval_of(message);
  order.interval = std::clamp(asked, kShortestInterval, kLongestInterval);
  if (order.interval != asked) {
    decoded.notes.push_back(absl::StrCat("load_reporting_interval must be 1 s to 3600 s, found ",
                                         message.has_load_reporting_interval()
                                             ? in_seconds(message.load_reporting_interval())
                                             : "none",
                                         "; reports are sent every ",
                                         order.interval / std::chrono::seconds(1),
                                         " s"));
  }
  if (!order.selection.all && order.selection.clusters.empty())
    decoded.notes.emplace_back(
        "the server asks for the load of no cluster: clusters is empty and send_all_clusters is "
        "not set; nothing is reported");
  if (message.report_endpoint_granularity())
    decoded.notes.emplace_back(
        "report_endpoint_granularity is not supported; load is reported by locality");
  return decoded;
}

}  // namespace signalbox::xds
