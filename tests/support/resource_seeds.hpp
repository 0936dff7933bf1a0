// SPDX-License-Identifier: Apache-2.0
//
// Resource seeds — small valid resources of all four types, in protobuf's text format. Fuzzers of
// resources begin with them, and a test cuts and changes their bytes.
//
//   kResourceSeeds ─▶ text proto ─▶ bytes ─▶ parse_resource with all_parse_options(): valid
//
// Type URLs in Anys have Envoy's package names ("envoy.…"), not those of signalbox's own copies of
// the messages. Together the seeds have every LB policy, and most of the other extensions that the
// parser reads.

#pragma once

#include "messages/resource.hpp"

namespace signalbox::tests {

struct ResourceSeed {
  const char* name;
  ResourceType type;
  const char* text;
};

inline constexpr ResourceSeed kResourceSeeds[] = {
    {"listener with rds", ResourceType::kListener, R"(name: "s" api_listener { api_listener {
       [type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager] {
         rds { config_source { ads {} } route_config_name: "r" }
         http_filters { name: "router" typed_config {
           [type.googleapis.com/envoy.extensions.filters.http.router.v3.Router] {} } } } } })"},
    {"listener with routes", ResourceType::kListener, R"(name: "s" api_listener { api_listener {
       [type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager] {
         route_config { virtual_hosts { domains: "*" routes { match { prefix: "" } route { cluster: "c" } } } }
         common_http_protocol_options { max_stream_duration { seconds: 1 } }
         http_filters { name: "router" typed_config {
           [type.googleapis.com/envoy.extensions.filters.http.router.v3.Router] {} } } } } })"},
    {"listener with filters", ResourceType::kListener, R"(name: "s" api_listener { api_listener {
       [type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager] {
         rds { config_source { self {} } route_config_name: "r" }
         http_filters { name: "session" typed_config {
           [type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession] {
             session_state { typed_config {
               [type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState] {
                 cookie { name: "session" path: "/" ttl { seconds: 120 } } } } } } } }
         http_filters { name: "fault" typed_config {
           [type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault] {
             delay { fixed_delay { nanos: 1 } percentage { numerator: 1 denominator: MILLION } }
             abort { grpc_status: 14 percentage { numerator: 1 } } } } }
         http_filters { name: "unknown" is_optional: true typed_config { type_url: "type.googleapis.com/x.Y" } }
         http_filters { name: "router" typed_config {
           [type.googleapis.com/xds.type.v3.TypedStruct] {
             type_url: "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" value {} } } } } } })"},
    {"listener of servers",
     ResourceType::kListener,
     R"(name: "s" address { socket_address { address: "::" port_value: 1 } })"},
    {"routes", ResourceType::kRouteConfig, R"(name: "r" virtual_hosts { domains: "*"
         routes { match { prefix: "/" } route { cluster: "c" } } })"},
    {"routes with matchers", ResourceType::kRouteConfig, R"(name: "r" virtual_hosts { domains: "*.d"
         routes { match { safe_regex { regex: "/a.*" } case_sensitive { value: false }
                          headers { name: "h" string_match { prefix: "p" ignore_case: true } }
                          headers { name: "n" range_match { start: 1 end: 2 } invert_match: true }
                          runtime_fraction { default_value { numerator: 5 } } }
                  non_forwarding_action {} } })"},
    {"routes with actions", ResourceType::kRouteConfig, R"(name: "r" virtual_hosts { domains: "d"
         retry_policy { retry_on: "unavailable" }
         typed_per_filter_config { key: "session" value {
           [type.googleapis.com/envoy.config.route.v3.FilterConfig] { config {
             [type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute] {
               disabled: true } } } } }
         routes { match { path: "/p/m" } route {
           weighted_clusters { clusters { name: "a" weight { value: 1 } } clusters { name: "b" weight { value: 2 } } }
           max_stream_duration { grpc_timeout_header_max { seconds: 1 } }
           hash_policy { header { header_name: "h" regex_rewrite { pattern { regex: "a" } substitution: "b" } } }
           hash_policy { filter_state { key: "io.grpc.channel_id" } terminal: true }
           retry_policy { retry_on: "internal" num_retries { value: 2 }
                          retry_back_off { base_interval { nanos: 1000000 } } } } } })"},
    {"routes with retries elsewhere",
     ResourceType::kRouteConfig,
     R"(name: "r" virtual_hosts { domains: "d"
         routes { match { prefix: "" } route { cluster: "c" retry_policy { retry_on: "unavailable"
           retry_host_predicate { name: "envoy.retry_host_predicates.previous_hosts" typed_config {
             [type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate] {} } } } } } })"},
    {"cluster of EDS",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } service_name: "e" })"},
    {"cluster of DNS",
     ResourceType::kCluster,
     R"(name: "c" type: LOGICAL_DNS load_assignment { endpoints {
         lb_endpoints { endpoint { address { socket_address { address: "h" port_value: 1 } } } } } })"},
    {"cluster of clusters", ResourceType::kCluster, R"(name: "c" cluster_type { typed_config {
       [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] { clusters: "a" clusters: "b" } } })"},
    {"cluster with settings",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { self {} } } connect_timeout { seconds: 1 }
        common_lb_config { override_host_status { statuses: HEALTHY statuses: DRAINING } }
        circuit_breakers { thresholds { max_requests { value: 1 } } }
        outlier_detection { interval { seconds: 1 } enforcing_failure_percentage { value: 1 } }
        lrs_server { self {} } lrs_report_endpoint_metrics: "named_metrics.m"
        health_checks { timeout { seconds: 1 } interval { seconds: 5 } interval_jitter { nanos: 5 }
          initial_jitter { seconds: 1 } interval_jitter_percent: 10 unhealthy_threshold { value: 2 }
          healthy_threshold { value: 3 } grpc_health_check { service_name: "s" authority: "a" } }
        health_checks { timeout { seconds: 1 } interval { seconds: 5 } unhealthy_threshold { value: 2 }
          healthy_threshold { value: 3 } tcp_health_check {} }
        upstream_config { typed_config {
          [type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions] {
            common_http_protocol_options { idle_timeout { seconds: 60 } } } } }
        transport_socket { typed_config {
          [type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext] {
            common_tls_context { validation_context { system_root_certs {}
              match_subject_alt_names { suffix: ".d" } } } } } })"},
    {"cluster with probes",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } }
        health_checks { timeout { seconds: 1 } interval { seconds: 5 } unhealthy_threshold { value: 2 }
          healthy_threshold { value: 3 } http_health_check { path: "/p" host: "h"
            expected_statuses { start: 200 end: 300 } retriable_statuses { start: 500 end: 600 } } }
        health_checks { timeout { seconds: 1 } interval { seconds: 5 } unhealthy_threshold { value: 2 }
          healthy_threshold { value: 3 } tcp_health_check { send { text: "00ff" } receive { binary: "x" } } })"},
    {"cluster in a mode",
     ResourceType::kCluster,
     R"(name: "c" cluster_type { typed_config {
        [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] { clusters: "a" } } }
        metadata { filter_metadata { key: "signalbox" value {
          fields { key: "aggregate_mode" value { string_value: "tiered" } } } } })"},
    {"cluster with a policy",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config { type_url: "type.googleapis.com/x.Y" } } }
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality] {
            endpoint_picking_policy { policies { typed_extension_config { typed_config {
              [type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest] {
                choice_count { value: 3 } } } } } } } } } } })"},
    {"cluster with a ring",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash] {
            minimum_ring_size { value: 1 } maximum_ring_size { value: 2 } } } } } })"},
    {"cluster with a table",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.maglev.v3.Maglev] {
            table_size { value: 7 } } } } } })"},
    {"cluster with draws",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random] {} } } } })"},
    {"cluster with a first address",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst] {
            shuffle_address_list: true } } } } })"},
    {"cluster with slow start",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin] {
            slow_start_config { slow_start_window { seconds: 5 } aggression { default_value: 2 }
              min_weight_percent { value: 10 } } } } } } })"},
    {"cluster with reported load",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin] {
            enable_oob_load_report { value: true } oob_reporting_period { seconds: 1 }
            blackout_period { seconds: 2 } weight_expiration_period { seconds: 3 }
            weight_update_period { seconds: 4 } error_utilization_penalty { value: 0.5 }
            metric_names_for_computing_utilization: "named_metrics.m" } } } } })"},
    {"cluster with a subset",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/envoy.extensions.load_balancing_policies.random_subsetting.v3.RandomSubsetting] {
            subset_size { value: 3 } child_policy { policies { typed_extension_config { typed_config {
              [type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random] {} } } } } } } } } })"},
    {"cluster with a ring from a Struct",
     ResourceType::kCluster,
     R"(name: "c" type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy {
        policies { typed_extension_config { typed_config {
          [type.googleapis.com/xds.type.v3.TypedStruct] {
            type_url: "type.googleapis.com/ring_hash_experimental" value {
              fields { key: "minRingSize" value { number_value: 3 } }
              fields { key: "maxRingSize" value { number_value: 4 } }
              fields { key: "requestHashHeader" value { string_value: "h" } } } } } } } })"},
    {"endpoints",
     ResourceType::kEndpoints,
     R"(cluster_name: "e" endpoints { locality {} load_balancing_weight { value: 1 }
         lb_endpoints { endpoint { address { socket_address { address: "10.0.0.1" port_value: 1 } } } } })"},
    {"endpoints with everything", ResourceType::kEndpoints, R"(cluster_name: "e"
         endpoints { priority: 1 locality { region: "r" } load_balancing_weight { value: 1 }
           metadata { typed_filter_metadata { key: "envoy.http11_proxy_transport_socket.proxy_address" value {
             [type.googleapis.com/envoy.config.core.v3.Address] {
               socket_address { address: "10.0.0.9" port_value: 3128 } } } } }
           lb_endpoints { health_status: DRAINING load_balancing_weight { value: 3 }
             metadata { filter_metadata { key: "envoy.lb" value { fields { key: "hash_key" value { string_value: "k" } } } } }
             endpoint { hostname: "h" address { socket_address { address: "::1" port_value: 1 } }
               additional_addresses { address { socket_address { address: "10.0.0.2" port_value: 2 } } } } } }
         endpoints { locality { zone: "z" sub_zone: "s" } load_balancing_weight { value: 4294967295 }
           lb_endpoints { health_status: DEGRADED endpoint { health_check_config { port_value: 81 }
             address { socket_address { address: "10.0.0.3" port_value: 1 } } } }
           lb_endpoints { health_status: UNHEALTHY endpoint { health_check_config { disable_active_health_check: true }
             address { socket_address { address: "10.0.0.4" port_value: 1 } } } } }
         policy { drop_overloads { category: "d" drop_percentage { numerator: 1 denominator: TEN_THOUSAND } }
                  overprovisioning_factor { value: 150 } weighted_priority_health: true })"},
    {"no endpoints", ResourceType::kEndpoints, R"(cluster_name: "e")"},
};

}  // namespace signalbox::tests
