// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/cluster.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "xds/parse/discovery.hpp"
#include "xds/parse/extension.hpp"
#include "xds/parse/health_check.hpp"
#include "xds/parse/lb_policy.hpp"
#include "xds/parse/outlier_detection.hpp"
#include "xds/parse/transport_socket.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;
using envoy::extensions::upstreams::http::v3::HttpProtocolOptions;

void parse_connect_timeout(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (!proto.has_connect_timeout()) return;
  const Field field = top.at("connect_timeout");
  const std::size_t errors_before = field.errors_so_far();
  cluster.connect_timeout = parse_duration(proto.connect_timeout(), field);
  if (cluster.connect_timeout == Duration::zero() && field.errors_so_far() == errors_before) {
    field.add("must be longer than 0, found 0");
  }
}

// Reads upstream_config's idle_timeout (A75-14 to A75-22).
void parse_upstream_config(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (!proto.has_upstream_config()) return;
  const Field config = top.at("upstream_config.typed_config");
  if (!proto.upstream_config().has_typed_config()) return config.add("must be set, found none");
  const auto extension = read_extension(proto.upstream_config().typed_config(), config);
  if (!extension.has_value()) return;
  if (extension->type != api_name(type_url_of<HttpProtocolOptions>())) {
    config.at("type_url")
        .add(absl::StrCat("must be ",
                          type_url_of<HttpProtocolOptions>(),
                          ", found ",
                          in_quotes(extension->type)));
    return;
  }
  const Field value = config.at("value");
  HttpProtocolOptions options;
  if (!decode(*extension, options, value)) return;
  if (options.common_http_protocol_options().has_idle_timeout()) {
    cluster.idle_timeout = parse_duration(options.common_http_protocol_options().idle_timeout(),
                                          value.at("common_http_protocol_options.idle_timeout"));
  }
}

// A55-3 to A55-5: health statuses in which a session cannot stay on its host are ignored.
void parse_override_host_status(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (!top.options().session_affinity) return;
  if (!proto.common_lb_config().has_override_host_status()) return;
  cluster.override_host_status = {};
  for (const int status : proto.common_lb_config().override_host_status().statuses()) {
    switch (status) {
      case envoy::config::core::v3::UNKNOWN:
        cluster.override_host_status.insert(HealthStatus::kUnknown);
        break;
      case envoy::config::core::v3::HEALTHY:
        cluster.override_host_status.insert(HealthStatus::kHealthy);
        break;
      case envoy::config::core::v3::DRAINING:
        cluster.override_host_status.insert(HealthStatus::kDraining);
        break;
      default:
        break;
    }
  }
}

// ENV-31. As in Envoy, values outside of 0 to 100 are refused, and fractions are truncated.
void parse_panic_threshold(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (!proto.common_lb_config().has_healthy_panic_threshold()) return;
  const double percent = proto.common_lb_config().healthy_panic_threshold().value();
  if (percent >= 0 && percent <= 100) {
    cluster.panic_threshold = static_cast<std::uint32_t>(percent);
  } else {
    top.at("common_lb_config.healthy_panic_threshold.value")
        .add(absl::StrCat("must be 0 to 100 (percent), found ", percent));
  }
}

// A32: the first entry of the DEFAULT priority is used, even if its max_requests is not set.
void parse_circuit_breakers(const ClusterProto& proto, Cluster& cluster) {
  for (const auto& threshold : proto.circuit_breakers().thresholds()) {
    if (threshold.priority() != envoy::config::core::v3::DEFAULT) continue;
    if (threshold.has_max_requests())
      cluster.max_concurrent_requests = threshold.max_requests().value();
    return;
  }
}

// A105: of per_host_thresholds too, the first entry of the DEFAULT priority is used.
void parse_per_host_thresholds(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  std::size_t at = 0;
  for (const auto& threshold : proto.circuit_breakers().per_host_thresholds()) {
    const Field field = top.at("circuit_breakers.per_host_thresholds", at++);
    if (threshold.priority() != envoy::config::core::v3::DEFAULT) continue;
    if (!threshold.has_max_connections()) return;
    cluster.max_connections_per_endpoint = threshold.max_connections().value();
    if (cluster.max_connections_per_endpoint == 0)
      field.at("max_connections").add("must be greater than 0, found 0");
    return;
  }
}

// A85: unknown metric names are ignored. A cluster that chooses no metrics reports all named
// metrics (A64), or none if ParseOptions::endpoint_metrics_are_chosen is set.
LoadMetricChoice parse_metric_choice(const ClusterProto& proto, const ParseOptions& options) {
  LoadMetricChoice choice;
  if (proto.lrs_report_endpoint_metrics().empty()) {
    choice.all_named = !options.endpoint_metrics_are_chosen;
    choice.prefixed = false;
    return choice.all_named ? choice : LoadMetricChoice{};
  }
  for (const std::string& text : proto.lrs_report_endpoint_metrics()) {
    absl::string_view name = text;
    if (name == "cpu_utilization") choice.cpu_utilization = true;
    if (name == "mem_utilization") choice.mem_utilization = true;
    if (name == "application_utilization") choice.application_utilization = true;
    if (!absl::ConsumePrefix(&name, "named_metrics.")) continue;
    if (name == "*")
      choice.all_named = true;
    else
      choice.named.emplace(name);
  }
  if (choice.all_named) choice.named.clear();
  return choice;
}

// A27, A37-17: without lrs_server no load is reported. Only `self` is possible: the server that
// sent the cluster.
void parse_load_reporting(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (!proto.has_lrs_server()) return;
  if (!proto.lrs_server().has_self())
    return top.at("lrs_server").add("must be self, found another server");
  const bool is_eds = std::holds_alternative<EdsDiscovery>(cluster.discovery);
  cluster.load_reporting =
      LoadReporting{top.options().server,
                    parse_metric_choice(proto, top.options()),
                    is_eds ? proto.eds_cluster_config().service_name() : std::string()};
}

// Signalbox's own metadata of an aggregate selects how its calls are spread over priorities
// (glossary: aggregate mode).
void parse_aggregate_mode(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  constexpr absl::string_view kOurs = "signalbox";
  const auto& all = proto.metadata().filter_metadata();
  const auto ours = all.find(std::string(kOurs));
  if (ours == all.end()) return;
  const auto found = ours->second.fields().find("aggregate_mode");
  if (found == ours->second.fields().end()) return;
  const ::google::protobuf::Value& value = found->second;
  if (value.string_value() == "priority") {
    cluster.aggregate_mode = AggregateMode::kPriority;
  } else if (value.string_value() == "tiered") {
    cluster.aggregate_mode = AggregateMode::kTiered;
  } else {
    const bool is_text = value.kind_case() == ::google::protobuf::Value::kStringValue;
    const Field metadata = top.at("metadata");
    const Field entry = metadata.at_key("filter_metadata", kOurs);
    entry.at("aggregate_mode")
        .add(absl::StrCat("must be \"priority\" or \"tiered\", found ",
                          is_text ? in_quotes(value.string_value()) : "no string"));
  }
}

}  // namespace

ReceivedResource parse_cluster(absl::string_view bytes, const ParseOptions& options) {
  ClusterProto proto;
  if (!decode(bytes, proto)) return undecodable("CDS", "a Cluster", bytes, proto, proto.name());
  ValidationErrors errors(options);
  const Field& top = errors.top();
  auto cluster = std::make_shared<Cluster>();
  cluster->name = ClusterName{proto.name()};
  require_name(proto.name(), top.at("name"));
  parse_discovery(proto, *cluster, top);
  const bool is_aggregate = std::holds_alternative<AggregateDiscovery>(cluster->discovery);
  if (is_aggregate) parse_aggregate_mode(proto, *cluster, top);
  if (options.keep_aggregate_lb_policy || !is_aggregate) {
    cluster->lb_policy = parse_lb_policy(proto, top);
  }
  parse_connect_timeout(proto, *cluster, top);
  parse_upstream_config(proto, *cluster, top);
  parse_override_host_status(proto, *cluster, top);
  parse_panic_threshold(proto, *cluster, top);
  parse_circuit_breakers(proto, *cluster);
  parse_per_host_thresholds(proto, *cluster, top);
  if (proto.has_outlier_detection()) {
    cluster->outlier_detection =
        parse_outlier_detection(proto.outlier_detection(), top.at("outlier_detection"));
  }
  if (proto.has_transport_socket())
    parse_transport_socket(proto.transport_socket(), *cluster, top.at("transport_socket"));
  // The health checks of an aggregate are those of its leaves.
  if (!is_aggregate)
    cluster->health_checks =
        parse_health_checks(proto.health_checks(), cluster->tls.has_value(), top);
  parse_load_reporting(proto, *cluster, top);
  if (!errors.empty()) return errors.refuse("CDS", proto.name());
  return {proto.name(), Resource{std::shared_ptr<const Cluster>(std::move(cluster))}};
}

}  // namespace signalbox::xds
