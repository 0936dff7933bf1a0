// SPDX-License-Identifier: Apache-2.0
//
// Each field of the resources is read, or `signalbox check` warns of it, or this file says why not.
// Extensions (messages in an Any) are not covered.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include <catch2/catch.hpp>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "xds/lint/lint.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using protobuf::FieldDescriptor;

struct Fields {
  const char* message;  // The message's name, without "signalbox.envoy.".
  const char* fields;   // Names of its fields, separated by spaces.
};

// Fields that xds/parse uses or refuses.
constexpr Fields kRead[] = {
    {"config.cluster.v3.CircuitBreakers", "thresholds per_host_thresholds"},
    {"config.cluster.v3.CircuitBreakers.Thresholds", "priority max_requests max_connections"},
    {"config.cluster.v3.Cluster",
     "name type cluster_type eds_cluster_config connect_timeout lb_policy health_checks "
     "circuit_breakers outlier_detection round_robin_lb_config ring_hash_lb_config "
     "least_request_lb_config "
     "maglev_lb_config transport_socket metadata common_lb_config load_assignment "
     "load_balancing_policy lrs_server lrs_report_endpoint_metrics "
     "upstream_config"},
    {"config.cluster.v3.Cluster.CommonLbConfig",
     "healthy_panic_threshold zone_aware_lb_config locality_weighted_lb_config "
     "override_host_status"},
    {"config.cluster.v3.Cluster.CommonLbConfig.ZoneAwareLbConfig",
     "routing_enabled min_cluster_size fail_traffic_on_panic"},
    {"config.cluster.v3.Cluster.CustomClusterType", "typed_config"},
    {"config.cluster.v3.Cluster.EdsClusterConfig", "eds_config service_name"},
    {"config.cluster.v3.Cluster.LeastRequestLbConfig",
     "choice_count active_request_bias slow_start_config"},
    {"config.cluster.v3.Cluster.MaglevLbConfig", "table_size"},
    {"config.cluster.v3.Cluster.RingHashLbConfig",
     "minimum_ring_size hash_function maximum_ring_size"},
    {"config.cluster.v3.Cluster.RoundRobinLbConfig", "slow_start_config"},
    {"config.cluster.v3.Cluster.SlowStartConfig",
     "slow_start_window aggression min_weight_percent"},
    {"config.cluster.v3.LoadBalancingPolicy", "policies"},
    {"config.cluster.v3.LoadBalancingPolicy.Policy", "typed_extension_config"},
    {"config.cluster.v3.OutlierDetection",
     "interval base_ejection_time max_ejection_percent enforcing_success_rate "
     "success_rate_minimum_hosts success_rate_request_volume success_rate_stdev_factor "
     "failure_percentage_threshold enforcing_failure_percentage failure_percentage_minimum_hosts "
     "failure_percentage_request_volume max_ejection_time"},
    {"config.core.v3.Address", "socket_address pipe envoy_internal_address"},
    {"config.core.v3.ConfigSource", "path api_config_source ads self path_config_source"},
    {"config.core.v3.HealthCheck",
     "timeout interval interval_jitter unhealthy_threshold healthy_threshold http_health_check "
     "tcp_health_check grpc_health_check interval_jitter_percent initial_jitter"},
    {"config.core.v3.HealthCheck.GrpcHealthCheck", "service_name authority"},
    {"config.core.v3.HealthCheck.HttpHealthCheck",
     "host path expected_statuses retriable_statuses"},
    {"config.core.v3.HealthCheck.Payload", "text binary"},
    {"config.core.v3.HealthCheck.TcpHealthCheck", "send receive"},
    {"config.core.v3.HealthStatusSet", "statuses"},
    {"config.core.v3.Locality", "region zone sub_zone"},
    {"config.core.v3.Metadata", "filter_metadata typed_filter_metadata"},
    {"config.core.v3.RuntimeDouble", "default_value"},
    {"config.core.v3.RuntimeFractionalPercent", "default_value"},
    {"config.core.v3.SocketAddress", "address port_value named_port resolver_name"},
    {"config.core.v3.TransportSocket", "typed_config"},
    {"config.core.v3.TypedExtensionConfig", "typed_config"},
    {"config.endpoint.v3.ClusterLoadAssignment", "cluster_name endpoints policy"},
    {"config.endpoint.v3.ClusterLoadAssignment.Policy",
     "drop_overloads overprovisioning_factor weighted_priority_health"},
    {"config.endpoint.v3.ClusterLoadAssignment.Policy.DropOverload", "category drop_percentage"},
    {"config.endpoint.v3.Endpoint", "address health_check_config hostname additional_addresses"},
    {"config.endpoint.v3.Endpoint.AdditionalAddress", "address"},
    {"config.endpoint.v3.Endpoint.HealthCheckConfig", "port_value disable_active_health_check"},
    {"config.endpoint.v3.LbEndpoint",
     "endpoint endpoint_name health_status metadata load_balancing_weight"},
    {"config.endpoint.v3.LocalityLbEndpoints",
     "locality lb_endpoints load_balancing_weight priority metadata"},
    {"config.listener.v3.ApiListener", "api_listener"},
    {"config.listener.v3.Listener", "name address api_listener"},
    {"config.route.v3.HeaderMatcher",
     "name exact_match range_match present_match prefix_match suffix_match safe_regex_match "
     "contains_match string_match invert_match treat_missing_header_as_empty"},
    {"config.route.v3.RetryPolicy", "retry_on num_retries retry_host_predicate retry_back_off"},
    {"config.route.v3.RetryPolicy.RetryBackOff", "base_interval max_interval"},
    {"config.route.v3.RetryPolicy.RetryHostPredicate", "name typed_config"},
    {"config.route.v3.Route", "match route typed_per_filter_config name"},
    {"config.route.v3.RouteAction",
     "cluster weighted_clusters auto_host_rewrite retry_policy hash_policy max_stream_duration"},
    {"config.route.v3.RouteAction.HashPolicy", "header filter_state terminal"},
    {"config.route.v3.RouteAction.HashPolicy.Header", "header_name regex_rewrite"},
    {"config.route.v3.RouteAction.MaxStreamDuration",
     "max_stream_duration grpc_timeout_header_max"},
    {"config.route.v3.RouteConfiguration", "name virtual_hosts"},
    {"config.route.v3.RouteMatch",
     "prefix path safe_regex path_separated_prefix path_match_policy case_sensitive headers "
     "runtime_fraction"},
    {"config.route.v3.VirtualHost", "name domains routes typed_per_filter_config retry_policy"},
    {"config.route.v3.WeightedCluster", "clusters"},
    {"config.route.v3.WeightedCluster.ClusterWeight", "name weight typed_per_filter_config"},
    {"type.matcher.v3.RegexMatchAndSubstitute", "pattern substitution"},
    {"type.matcher.v3.RegexMatcher", "regex"},
    {"type.matcher.v3.StringMatcher", "exact prefix suffix safe_regex contains ignore_case"},
    {"type.v3.FractionalPercent", "numerator denominator"},
    {"type.v3.Int64Range", "start end"},
    {"type.v3.Percent", "value"},
};

// Fields that are not read, with the reason why no warning is needed.
constexpr Fields kNeedNoWarning[] = {
    // Names that decide nothing: the type of the configuration decides.
    {"config.cluster.v3.Cluster.CustomClusterType", "name"},
    {"config.core.v3.TransportSocket", "name"},
    {"config.core.v3.TypedExtensionConfig", "name"},
    // Messages that have these fields are refused.
    {"config.core.v3.EnvoyInternalAddress", "server_listener_name endpoint_id"},
    {"config.core.v3.PathConfigSource", "path"},
    {"config.core.v3.Pipe", "path"},
    // signalbox has only version 3 of the API.
    {"config.core.v3.ConfigSource", "resource_api_version"},
    {"config.core.v3.SelfConfigSource", "transport_api_version"},
    // Envoy's logs and filters read this field, and its routing does not.
    {"config.route.v3.Route", "metadata"},
    // Envoy does not use this field either: it adds up the weights.
    {"config.route.v3.WeightedCluster", "total_weight"},
    // RE2 is the only engine.
    {"type.matcher.v3.RegexMatcher", "google_re2"},
};

using Names = std::set<std::string>;

template <std::size_t size>
Names names_of(const Fields (&table)[size]) {
  Names names;
  for (const Fields& row : table) {
    for (const absl::string_view field : absl::StrSplit(row.fields, ' '))
      names.insert(absl::StrCat(row.message, ".", field));
  }
  return names;
}

// Sets the field so that it is serialised. Skips numbers, bools, and lists of texts or enumerators:
// none of these fields has a warning here.
void set_field(protobuf::Message& message, const FieldDescriptor& field) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field.is_repeated()) {
    reflection.AddMessage(&message, &field);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    reflection.MutableMessage(&message, &field);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field.is_repeated()) {
    reflection.SetString(&message, &field, "x");
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM && !field.is_repeated()) {
    const protobuf::EnumDescriptor& values = *field.enum_type();
    reflection.SetEnumValue(&message, &field, values.value(values.value_count() - 1)->number());
  }
}

bool is_warned_of(const FieldDescriptor& field) {
  const protobuf::Descriptor* type = field.containing_type();
  const std::unique_ptr<protobuf::Message> message(
      protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  if (!field.is_map()) set_field(*message, field);
  ResourceBytes resource;
  resource.type_url = type_url_of(*type);
  resource.bytes = message->SerializeAsString();
  return !unread_fields(resource).empty();
}

struct Reached {
  Names all;
  Names silent;  // The fields without a warning.
};

// Does not go below a field with a warning, or below a map. Visits each message type once.
void visit(const protobuf::Descriptor& type, Names& visited, Reached& reached) {
  absl::string_view message = type.full_name();
  if (!absl::ConsumePrefix(&message, "signalbox.envoy.")) return;
  if (!visited.insert(std::string(message)).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = absl::StrCat(message, ".", field.name());
    reached.all.insert(name);
    if (is_warned_of(field)) continue;
    reached.silent.insert(name);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map())
      visit(*field.message_type(), visited, reached);
  }
}

}  // namespace

TEST_CASE("unread fields: each field of a resource is read or has a warning", "[xds][lint]") {
  Reached reached;
  Names visited;
  for (const ResourceType type : {ResourceType::kListener,
                                  ResourceType::kRouteConfig,
                                  ResourceType::kCluster,
                                  ResourceType::kEndpoints}) {
    const protobuf::Descriptor* message = find_message(type_url_of(type));
    REQUIRE(message != nullptr);
    visit(*message, visited, reached);
  }
  Names known = names_of(kRead);
  known.merge(names_of(kNeedNoWarning));
  Names unknown;
  for (const std::string& name : reached.silent) {
    if (!known.contains(name)) unknown.insert(name);
  }
  Names stale;
  for (const std::string& name : known) {
    if (!reached.all.contains(name)) stale.insert(name);
  }
  CHECK(unknown == Names{});  // If not: read the field, or add it to kUnread in xds/lint.
  CHECK(stale == Names{});    // If not: the tables above name a field that is gone.
}

}  // namespace signalbox::xds
