// SPDX-License-Identifier: Apache-2.0
#include "xds/lrs/load_codec.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>
#include <google/protobuf/text_format.h>

#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"

namespace signalbox::xds {
namespace {

using envoy::service::load_stats::v3::LoadStatsRequest;
using envoy::service::load_stats::v3::LoadStatsResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string response(const std::string& text) {
  LoadStatsResponse message;
  REQUIRE(::google::protobuf::TextFormat::ParseFromString(text, &message));
  return message.SerializeAsString();
}

LoadStatsRequest request(const std::string& bytes) {
  LoadStatsRequest message;
  REQUIRE(message.ParseFromString(bytes));
  return message;
}

TEST_CASE("load codec: the first request has the node and a feature of its own", "[xds][lrs][C1]") {
  envoy::config::core::v3::Node node;
  node.set_id("me");
  node.add_client_features("xds.config.resource-in-sotw");
  const LoadStatsRequest first = request(encode_first_load_request(node.SerializeAsString()));
  CHECK(first.node().id() == "me");
  REQUIRE(first.node().client_features_size() == 2);
  CHECK(first.node().client_features(1) == "envoy.lrs.supports_send_all_clusters");
  CHECK(first.cluster_stats_size() == 0);
}

TEST_CASE("load codec: a report has the counts, and no node", "[xds][lrs][C3][C4][C6]") {
  const std::vector<ClusterLoad> loads{
      {.cluster = ClusterName("orders"),
       .service = "orders-eds",
       .interval = milliseconds(1500),
       .drops = {{"lb", 3}, {"throttle", 2}},
       .breaker_drops = 4,
       .localities = {{.locality = {.region = "r", .zone = "z", .sub_zone = "s"},
                       .issued = 9,
                       .succeeded = 5,
                       .failed = 2,
                       .in_progress = 7,
                       .cpu_utilization = {2, 1.5},
                       .named = {{"named_metrics.queue", {3, 12.5}}}}}}};
  const LoadStatsRequest report = request(encode_load_request(loads));
  CHECK_FALSE(report.has_node());
  LoadStatsRequest wanted;
  REQUIRE(::google::protobuf::TextFormat::ParseFromString(R"(
      cluster_stats {
        cluster_name: "orders" cluster_service_name: "orders-eds"
        load_report_interval { seconds: 1 nanos: 500000000 }
        total_dropped_requests: 9
        dropped_requests { category: "lb" dropped_count: 3 }
        dropped_requests { category: "throttle" dropped_count: 2 }
        upstream_locality_stats {
          locality { region: "r" zone: "z" sub_zone: "s" }
          total_issued_requests: 9 total_successful_requests: 5
          total_error_requests: 2 total_requests_in_progress: 7
          cpu_utilization { num_requests_finished_with_metric: 2 total_metric_value: 1.5 }
          load_metric_stats {
            metric_name: "named_metrics.queue"
            num_requests_finished_with_metric: 3 total_metric_value: 12.5
          }
        }
      })",
                                                          &wanted));
  CHECK(report.ShortDebugString() == wanted.ShortDebugString());
}

TEST_CASE("load codec: a metric's name that is no UTF-8 does not spoil the report",
          "[xds][lrs][C6]") {
  const std::vector<ClusterLoad> loads{
      {.cluster = ClusterName("c"), .localities = {{.issued = 1, .named = {{"\xff", {1, 1}}}}}}};
  const LoadStatsRequest report = request(encode_load_request(loads));
  CHECK(report.cluster_stats(0).upstream_locality_stats(0).load_metric_stats_size() == 1);
}

TEST_CASE("load codec: a response names clusters or wants all", "[xds][lrs][C2]") {
  const auto named = decode_load_response(
      response("clusters: \"b\" clusters: \"a\" load_reporting_interval { seconds: 3 }"));
  REQUIRE(named.ok());
  CHECK(named->order ==
        LoadOrder{.selection = {.all = false, .clusters = {"a", "b"}}, .interval = seconds(3)});
  CHECK(named->notes.empty());
  const auto all = decode_load_response(
      response("send_all_clusters: true clusters: \"a\" load_reporting_interval { seconds: 60 }"));
  REQUIRE(all.ok());
  CHECK(all->order == LoadOrder{.selection = {.all = true}, .interval = seconds(60)});
  CHECK(all->notes.empty());
}

TEST_CASE("load codec: an impossible interval is bounded, and the note says how",
          "[xds][lrs][C2]") {
  struct Row {
    std::string text;
    Duration used;
    std::string found;
  };

  const auto row = GENERATE(values<Row>({
      {"", seconds(1), "found none; reports are sent every 1 s"},
      {"load_reporting_interval {}", seconds(1), "found 0 s; reports"},
      {"load_reporting_interval { nanos: 200000000 }", seconds(1), "found 0.2 s; reports"},
      {"load_reporting_interval { seconds: -5 }", seconds(1), "found -5 s; reports"},
      {"load_reporting_interval { seconds: 31536000 }",
       std::chrono::hours(1),
       "found 31536000 s; reports are sent every 3600 s"},
      {"load_reporting_interval { seconds: 9223372036854775807 }",
       std::chrono::hours(1),
       "must be 1 s to 3600 s"},
      {"load_reporting_interval { seconds: -9223372036854775808 nanos: -1 }",
       seconds(1),
       "must be 1 s to 3600 s"},
  }));
  DYNAMIC_SECTION(row.text) {
    const auto decoded = decode_load_response(response("send_all_clusters: true " + row.text));
    REQUIRE(decoded.ok());
    CHECK(decoded->order.interval == row.used);
    REQUIRE(decoded->notes.size() == 1);
    CHECK(absl::StrContains(decoded->notes[0], row.found));
  }
}

TEST_CASE("load codec: parts of a response that are not obeyed are told", "[xds][lrs][C2]") {
  const auto none = decode_load_response(response("load_reporting_interval { seconds: 1 }"));
  REQUIRE(none.ok());
  REQUIRE(none->notes.size() == 1);
  CHECK(absl::StrContains(none->notes[0], "clusters is empty and send_all_clusters is not set"));
  const auto fine =
      decode_load_response(response("send_all_clusters: true report_endpoint_granularity: true "
                                    "load_reporting_interval { seconds: 1 }"));
  REQUIRE(fine.ok());
  REQUIRE(fine->notes.size() == 1);
  CHECK(absl::StrContains(fine->notes[0], "report_endpoint_granularity is not supported"));
}

TEST_CASE("load codec: garbage and too many names are errors", "[xds][lrs][C2]") {
  const auto garbage = decode_load_response("\x0a\xff garbage");
  CHECK(garbage.status().message() == "the server's message is no LoadStatsResponse (10 bytes)");
  std::string many;
  for (std::size_t i = 0; i <= kMostLoadClusters; ++i)
    many.append("\x0a\x00", 2);
  const auto flood = decode_load_response(many);
  CHECK(absl::StrContains(flood.status().message(), "names 100001 clusters"));
}

}  // namespace
}  // namespace signalbox::xds
