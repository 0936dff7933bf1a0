// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/peer_loads.hpp"

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

namespace signalbox::test {
namespace {

LoadRequest::Locality locality_of(const nlohmann::json& event) {
  LoadRequest::Locality locality{.name = event["locality"],
                                 .calls = {event["issued"], event["succeeded"], event["failed"]},
                                 .in_progress = event["in_progress"],
                                 .metrics = {}};
  for (const auto& [name, sum] : event["metrics"].items())
    locality.metrics[name] = sum["total"];
  return locality;
}

LoadRequest::Cluster cluster_of(const nlohmann::json& event) {
  LoadRequest::Cluster cluster{
      .name = event["name"],
      .service = event["service"],
      .interval = std::chrono::milliseconds(event["interval_ms"].get<std::int64_t>()),
      .drops = event["drops"],
      .localities = {}};
  cluster.drops[""] = event["dropped"];
  for (const auto& locality : event["localities"])
    cluster.localities.push_back(locality_of(locality));
  return cluster;
}

}  // namespace

LoadSums& LoadSums::operator+=(const LoadSums& other) {
  issued += other.issued;
  succeeded += other.succeeded;
  failed += other.failed;
  return *this;
}

LoadSums LoadRequest::calls() const {
  LoadSums sums;
  for (const Cluster& cluster : clusters) {
    for (const Locality& locality : cluster.localities)
      sums += locality.calls;
  }
  return sums;
}

std::map<LoadKey, LoadSums> books_of(const std::vector<LoadRequest>& requests) {
  std::map<LoadKey, LoadSums> books;
  for (const LoadRequest& request : requests) {
    for (const LoadRequest::Cluster& cluster : request.clusters) {
      for (const LoadRequest::Locality& locality : cluster.localities)
        books[{cluster.name, cluster.service, locality.name}] += locality.calls;
    }
  }
  return books;
}

LoadSums calls_of(const std::vector<LoadRequest>& requests) {
  LoadSums sums;
  for (const LoadRequest& request : requests)
    sums += request.calls();
  return sums;
}

std::optional<PeerNode> node_of(const nlohmann::json& event) {
  if (!event.contains("node")) return std::nullopt;
  const auto& node = event["node"];
  return PeerNode{.id = node["id"], .agent = node["agent"], .features = node["features"]};
}

LoadRequest load_request_of(const nlohmann::json& event) {
  LoadRequest request{.stream = event["stream"],
                      .node = node_of(event),
                      .clusters = {},
                      .ends_stream = event["ends"]};
  for (const auto& cluster : event["clusters"])
    request.clusters.push_back(cluster_of(cluster));
  return request;
}

std::string to_string(const std::vector<LoadRequest>& requests) {
  std::string text;
  for (const LoadRequest& request : requests) {
    absl::StrAppend(&text,
                    "stream ",
                    request.stream,
                    request.node ? ", with node" : "",
                    request.ends_stream ? ", cut" : "",
                    "\n");
    for (const LoadRequest::Cluster& cluster : request.clusters) {
      absl::StrAppend(&text,
                      "  ",
                      cluster.name,
                      " \"",
                      cluster.service,
                      "\", ",
                      cluster.interval.count(),
                      " ms\n");
      for (const LoadRequest::Locality& locality : cluster.localities) {
        absl::StrAppend(&text,
                        "    ",
                        locality.name,
                        ": ",
                        locality.calls.issued,
                        " issued, ",
                        locality.calls.succeeded,
                        " succeeded, ",
                        locality.calls.failed,
                        " failed, ",
                        locality.in_progress,
                        " in progress\n");
      }
    }
  }
  return text;
}

}  // namespace signalbox::test
