// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/resources.hpp"

#include <algorithm>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/core/v3/base.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "signalbox/envoy/extensions/filters/http/router/v3/router.pb.h"
#include "signalbox/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "signalbox/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb.h"
#include "signalbox/envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "tests/sim/sessions.hpp"
#include "xds/type_url.hpp"

namespace signalbox::sim {
namespace {

using envoy::config::cluster::v3::Cluster;
using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::listener::v3::Listener;
using envoy::config::route::v3::RouteConfiguration;
using envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;

template <typename Message>
void pack(const Message& message, ::google::protobuf::Any& any) {
  any.set_type_url(xds::type_url_of<Message>());
  any.set_value(message.SerializeAsString());
}

void fill_routes(const TargetModel& target, RouteConfiguration& config) {
  config.set_name(target.route_name);
  auto* host = config.add_virtual_hosts();
  host->set_name("all");
  host->add_domains(target.for_somebody_else ? "somebody.else" : "*");
  for (const RouteModel& model : target.routes) {
    auto* route = host->add_routes();
    route->mutable_match()->set_prefix(model.prefix);
    if (model.clusters.size() == 1) {
      route->mutable_route()->set_cluster(model.clusters.front().first);
      continue;
    }
    for (const auto& [name, weight] : model.clusters) {
      auto* choice = route->mutable_route()->mutable_weighted_clusters()->add_clusters();
      choice->set_name(name);
      choice->mutable_weight()->set_value(weight);
    }
  }
}

void set_address(const std::string& host_and_port, envoy::config::core::v3::Address& address) {
  const auto colon = host_and_port.rfind(':');
  auto* socket = address.mutable_socket_address();
  socket->set_address(host_and_port.substr(0, colon));
  socket->set_port_value(static_cast<unsigned>(std::stoul(host_and_port.substr(colon + 1))));
}

envoy::config::core::v3::HealthStatus health_of(const HostModel& host) {
  if (host.unhealthy) return envoy::config::core::v3::UNHEALTHY;
  if (host.draining) return envoy::config::core::v3::DRAINING;
  return host.degraded ? envoy::config::core::v3::DEGRADED : envoy::config::core::v3::HEALTHY;
}

// Writes the limit of concurrent calls (A32) and the number of connections to a host (A105), if the
// model has them.
void set_limits(const ClusterModel& model, Cluster& cluster) {
  if (model.max_connections > 1) {
    auto* threshold = cluster.mutable_circuit_breakers()->add_per_host_thresholds();
    threshold->mutable_max_connections()->set_value(model.max_connections);
  }
  if (const auto most = limit(model)) {
    auto* threshold = cluster.mutable_circuit_breakers()->add_thresholds();
    threshold->mutable_max_requests()->set_value(*most);
  }
}

// Writes two categories of drops that together drop `percent` of the calls. Each category drops its
// part of the calls that the categories before it let pass.
void set_drops(unsigned percent, ClusterLoadAssignment& assignment) {
  if (percent == 0) return;
  const unsigned first = percent / 2;
  auto* drop = assignment.mutable_policy()->add_drop_overloads();
  drop->set_category("lb");
  drop->mutable_drop_percentage()->set_numerator(first);
  constexpr unsigned kMillion = 1'000'000;
  drop = assignment.mutable_policy()->add_drop_overloads();
  drop->set_category("throttle");
  drop->mutable_drop_percentage()->set_numerator((percent - first) * kMillion / (100 - first));
  drop->mutable_drop_percentage()->set_denominator(envoy::type::v3::FractionalPercent::MILLION);
}

// Writes outlier detection (A50). Its usual times are short, so that hosts are ejected and return
// while the world's faults still go on.
void set_ejection(const ClusterModel& model, Cluster& cluster) {
  if (!model.ejects) return;
  auto& settings = *cluster.mutable_outlier_detection();
  settings.mutable_interval()->set_seconds(model.ejection_seconds);
  settings.mutable_base_ejection_time()->set_seconds(2);
  settings.mutable_max_ejection_time()->set_seconds(8);
  settings.mutable_max_ejection_percent()->set_value(50);
  settings.mutable_enforcing_success_rate()->set_value(0);
  settings.mutable_enforcing_failure_percentage()->set_value(100);
  settings.mutable_failure_percentage_threshold()->set_value(50);
  settings.mutable_failure_percentage_minimum_hosts()->set_value(1);
  settings.mutable_failure_percentage_request_volume()->set_value(2);
}

// Every third cluster has health checks. Their interval is that of outlier detection, but at most
// 10 s: a recovered host must be known to be healthy before the simulator checks calls.
void set_health_checks(const ClusterModel& model, Cluster& cluster) {
  if (number_of(cluster.name()) % 3 != 0) return;
  auto& check = *cluster.add_health_checks();
  check.mutable_timeout()->set_seconds(1);
  constexpr unsigned kRarest = 10;
  check.mutable_interval()->set_seconds(std::min(model.ejection_seconds, kRarest));
  check.mutable_unhealthy_threshold()->set_value(2);
  check.mutable_healthy_threshold()->set_value(1);
  check.mutable_tcp_health_check();
}

// Writes how long sessions keep an idle host, and in which health states (A55, A75).
void set_affinity(const ClusterModel& model, Cluster& cluster) {
  if (model.idle_seconds) {
    envoy::extensions::upstreams::http::v3::HttpProtocolOptions options;
    options.mutable_common_http_protocol_options()->mutable_idle_timeout()->set_seconds(
        *model.idle_seconds);
    cluster.mutable_upstream_config()->set_name("http");
    pack(options, *cluster.mutable_upstream_config()->mutable_typed_config());
  }
  if (model.may_stay == MayStay::kServed) return;
  auto* statuses = cluster.mutable_common_lb_config()->mutable_override_host_status();
  if (model.may_stay == MayStay::kNobody) return;
  for (const auto status : {envoy::config::core::v3::UNKNOWN,
                            envoy::config::core::v3::HEALTHY,
                            envoy::config::core::v3::DRAINING})
    statuses->add_statuses(status);
}

// Writes the aggregate's own mode of spreading calls and its own panic threshold, if the model sets
// them (ENV-31).
void set_spread(const ClusterModel& model, Cluster& cluster) {
  if (model.mode) {
    auto& ours = (*cluster.mutable_metadata()->mutable_filter_metadata())["signalbox"];
    (*ours.mutable_fields())["aggregate_mode"].set_string_value(
        *model.mode == AggregateMode::kTiered ? "tiered" : "priority");
  }
  if (model.panic_percent) {
    cluster.mutable_common_lb_config()->mutable_healthy_panic_threshold()->set_value(
        *model.panic_percent);
  }
}

void add_session_filter(const TargetModel& target, HttpConnectionManager& manager) {
  envoy::extensions::http::stateful_session::cookie::v3::CookieBasedSessionState state;
  state.mutable_cookie()->set_name(kCookieName);
  state.mutable_cookie()->set_path(target.cookie_path);
  envoy::extensions::filters::http::stateful_session::v3::StatefulSession session;
  session.mutable_session_state()->set_name("cookie");
  pack(state, *session.mutable_session_state()->mutable_typed_config());
  auto* filter = manager.add_http_filters();
  filter->set_name("sessions");
  pack(session, *filter->mutable_typed_config());
}

}  // namespace

std::string listener_bytes(const TargetModel& target) {
  HttpConnectionManager manager;
  if (target.inline_routes) {
    fill_routes(target, *manager.mutable_route_config());
  } else {
    manager.mutable_rds()->set_route_config_name(target.route_name);
    manager.mutable_rds()->mutable_config_source()->mutable_ads();
  }
  if (target.sessions) add_session_filter(target, manager);
  auto* filter = manager.add_http_filters();
  filter->set_name("router");
  pack(envoy::extensions::filters::http::router::v3::Router(), *filter->mutable_typed_config());
  Listener listener;
  listener.set_name(target.listener);
  pack(manager, *listener.mutable_api_listener()->mutable_api_listener());
  return listener.SerializeAsString();
}

std::string route_bytes(const TargetModel& target) {
  RouteConfiguration config;
  fill_routes(target, config);
  return config.SerializeAsString();
}

std::string cluster_bytes(const std::string& name, const ClusterModel& model) {
  Cluster cluster;
  cluster.set_name(name);
  cluster.mutable_connect_timeout()->set_seconds(model.connect_timeout_seconds);
  if (model.kind == ClusterKind::kAggregate) {
    envoy::extensions::clusters::aggregate::v3::ClusterConfig aggregate;
    for (const std::string& child : model.children)
      aggregate.add_clusters(child);
    cluster.mutable_cluster_type()->set_name("envoy.clusters.aggregate");
    pack(aggregate, *cluster.mutable_cluster_type()->mutable_typed_config());
    set_spread(model, cluster);
    return cluster.SerializeAsString();
  }
  if (model.policy->write != nullptr) {
    model.policy->write(*cluster.mutable_load_balancing_policy());
  } else if (const auto& zones = model.policy->zones) {
    auto& rule = *cluster.mutable_common_lb_config()->mutable_zone_aware_lb_config();
    rule.mutable_routing_enabled()->set_value(zones->percent);
    rule.mutable_min_cluster_size()->set_value(zones->fewest);
  }
  set_limits(model, cluster);
  set_ejection(model, cluster);
  set_health_checks(model, cluster);
  set_affinity(model, cluster);
  if (has_load_reports(name)) {
    cluster.mutable_lrs_server()->mutable_self();
    for (const std::string& metric : reported_metrics(name))
      cluster.add_lrs_report_endpoint_metrics(metric);
  }
  if (model.kind == ClusterKind::kDns) {
    cluster.set_type(Cluster::LOGICAL_DNS);
    auto* endpoint =
        cluster.mutable_load_assignment()->add_endpoints()->add_lb_endpoints()->mutable_endpoint();
    set_address(model.dns_name, *endpoint->mutable_address());
  } else {
    cluster.set_type(Cluster::EDS);
    cluster.mutable_eds_cluster_config()->mutable_eds_config()->mutable_ads();
  }
  return cluster.SerializeAsString();
}

std::string endpoints_bytes(const std::string& name, const ClusterModel& cluster) {
  ClusterLoadAssignment assignment;
  assignment.set_cluster_name(name);
  set_drops(drop_percent(cluster), assignment);
  for (std::size_t priority = 0; priority < cluster.priorities.size(); ++priority) {
    for (const LocalityModel& model : cluster.priorities[priority]) {
      auto* locality = assignment.add_endpoints();
      locality->set_priority(static_cast<unsigned>(priority));
      locality->mutable_locality()->set_region(kRegion);
      locality->mutable_locality()->set_zone(zone_of(model));
      locality->mutable_locality()->set_sub_zone(model.name);
      locality->mutable_load_balancing_weight()->set_value(model.weight);
      for (const HostModel& host : model.hosts) {
        auto* endpoint = locality->add_lb_endpoints();
        endpoint->set_health_status(health_of(host));
        endpoint->mutable_load_balancing_weight()->set_value(host.weight);
        set_address(address_of(name, host.number).str(),
                    *endpoint->mutable_endpoint()->mutable_address());
      }
    }
  }
  return assignment.SerializeAsString();
}

std::string node_bytes(const std::string& zone) {
  envoy::config::core::v3::Node node;
  node.set_id("simulated");
  if (!zone.empty()) {
    node.mutable_locality()->set_region(kRegion);
    node.mutable_locality()->set_zone(zone);
  }
  return node.SerializeAsString();
}

std::string bad_listener_bytes(const std::string& name) {
  Listener listener;
  listener.set_name(name);  // The listener has no api_listener.
  return listener.SerializeAsString();
}

std::string garbage_bytes() {
  return "\xff\xff\xff\xff";
}

std::string bad_cluster_bytes(const std::string& name) {
  Cluster cluster;
  cluster.set_name(name);
  cluster.set_type(Cluster::ORIGINAL_DST);
  return cluster.SerializeAsString();
}

std::string bad_endpoints_bytes(const std::string& name) {
  ClusterLoadAssignment assignment;
  assignment.set_cluster_name(name);
  auto* locality = assignment.add_endpoints();
  locality->set_priority(3);  // The only priority is 3, so 0 to 2 are a gap.
  locality->mutable_locality()->set_zone("z");
  locality->mutable_load_balancing_weight()->set_value(1);
  return assignment.SerializeAsString();
}

std::string bad_route_bytes(const std::string& name) {
  RouteConfiguration config;
  config.set_name(name);
  auto* host = config.add_virtual_hosts();
  host->add_domains(std::string("*"));
  auto* route = host->add_routes();
  route->mutable_match()->mutable_safe_regex()->set_regex("(");
  route->mutable_route()->set_cluster("c0");
  return config.SerializeAsString();
}

}  // namespace signalbox::sim
