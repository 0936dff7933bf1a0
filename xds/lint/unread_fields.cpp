// SPDX-License-Identifier: Apache-2.0
//
// Finds set fields that signalbox does not read although they change the behaviour of Envoy. In
// fields that signalbox reads, finds values that signalbox does not act on, such as an unknown
// retry_on condition. Only fields of signalbox's own messages are checked: any other field is an
// error of the file (xds/resource_file).
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/core/v3/health_check.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/common/v3/common.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb.h"
#include "xds/lint/lint.hpp"
#include "xds/parse/retry_policy.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using RetryProto = envoy::config::route::v3::RetryPolicy;
using FilterStateProto = envoy::config::route::v3::RouteAction::HashPolicy::FilterState;
using ClusterProto = envoy::config::cluster::v3::Cluster;
using LocalityProto = envoy::extensions::load_balancing_policies::common::v3::LocalityLbConfig;
using WrrLocalityProto = envoy::extensions::load_balancing_policies::wrr_locality::v3::WrrLocality;
using HttpCheckProto = envoy::config::core::v3::HealthCheck::HttpHealthCheck;

struct UnreadField {
  absl::string_view message;  // The message's name below envoy.config.
  absl::string_view field;
  absl::string_view what;
};

constexpr absl::string_view kNoCalls = "signalbox cannot do this: the calls of this route fail";
constexpr absl::string_view kNoRoute = "signalbox cannot do this: the route is left out";
constexpr absl::string_view kNoHash = "signalbox cannot hash this: the entry is left out";
constexpr absl::string_view kNoCheck =
    "signalbox cannot do this: the health check is left out, as if it were absent";
constexpr absl::string_view kNoTlsCheck =
    "signalbox cannot do this over TLS: the health check is left out, as if it were absent";
constexpr absl::string_view kNotOfDns =
    "signalbox does not read it: the endpoint of a LOGICAL_DNS cluster is the address alone";
constexpr absl::string_view kNoTarget = "a listener for servers: calls to this target fail";

constexpr UnreadField kUnread[] = {
    {"core.v3.HealthCheck", "custom_health_check", kNoCheck},
    {"core.v3.HealthCheck.HttpHealthCheck", "codec_client_type", kNoCheck},
    {"core.v3.HealthCheck.HttpHealthCheck", "receive", kNoCheck},
    {"core.v3.HealthCheck.HttpHealthCheck", "request_headers_to_add", kNoCheck},
    {"core.v3.HealthCheck.HttpHealthCheck", "send", kNoCheck},
    {"core.v3.HealthCheck.HttpHealthCheck", "service_name_matcher", kNoCheck},
    {"core.v3.RuntimeDouble",
     "runtime_key",
     "signalbox does not read it: default_value is the value"},
    {"core.v3.RuntimeFractionalPercent",
     "runtime_key",
     "signalbox does not read it: default_value is the fraction"},
    {"core.v3.SocketAddress", "protocol", "signalbox does not read it: connections use TCP"},
    {"core.v3.SocketAddress",
     "resolver_name",
     "signalbox does not read it: the address is used as it stands"},
    {"listener.v3.Listener", "default_filter_chain", kNoTarget},
    {"listener.v3.Listener", "filter_chains", kNoTarget},
    {"route.v3.Route", "direct_response", kNoCalls},
    {"route.v3.Route", "filter_action", kNoCalls},
    {"route.v3.Route", "non_forwarding_action", kNoCalls},
    {"route.v3.Route", "redirect", kNoCalls},
    {"route.v3.RouteAction", "cluster_header", kNoRoute},
    {"route.v3.RouteAction", "cluster_specifier_plugin", kNoRoute},
    {"route.v3.RouteAction", "inline_cluster_specifier_plugin", kNoRoute},
    {"route.v3.RouteAction",
     "timeout",
     "signalbox does not read it; max_stream_duration ends calls (gRFC A31)"},
    {"route.v3.RouteAction.HashPolicy", "connection_properties", kNoHash},
    {"route.v3.RouteAction.HashPolicy", "cookie", kNoHash},
    {"route.v3.RouteAction.HashPolicy", "query_parameter", kNoHash},
    {"route.v3.RouteAction.MaxStreamDuration",
     "grpc_timeout_header_offset",
     "signalbox does not read it"},
    {"route.v3.RouteConfiguration",
     "cluster_specifier_plugins",
     "signalbox does not read it: a route that names a plugin is left out"},
    {"route.v3.RouteMatch", "connect_matcher", kNoRoute},
    {"route.v3.RouteMatch",
     "grpc",
     "signalbox does not read it: the route matches calls of every protocol"},
    {"route.v3.RouteMatch", "query_parameters", kNoRoute},
    {"route.v3.RouteMatch", "tls_context", "signalbox does not read it"},
    {"route.v3.WeightedCluster.ClusterWeight",
     "cluster_header",
     "signalbox does not read it: calls go to the cluster of the entry's name"},
};

const UnreadField* find_unread(const protobuf::FieldDescriptor& field) {
  absl::string_view message = field.containing_type()->full_name();
  if (!absl::ConsumePrefix(&message, "signalbox.envoy.config.")) return nullptr;
  for (const UnreadField& unread : kUnread) {
    if (unread.message == message && unread.field == field.name()) return &unread;
  }
  return nullptr;
}

// Appends a field to a path: "virtual_hosts[0]", "typed_per_filter_config".
std::string below(const std::string& path,
                  const std::string& name,
                  int index = 0,
                  bool is_list = false) {
  return absl::StrCat(
      path, path.empty() ? "" : ".", name, is_list ? absl::StrCat("[", index, "]") : "");
}

void look_at_retries(const RetryProto& retries,
                     const std::string& path,
                     std::vector<LintFinding>& findings) {
  std::vector<std::string> unknown;
  bool any_known = false;
  for (absl::string_view condition :
       absl::StrSplit(absl::string_view(retries.retry_on()), ',', absl::SkipWhitespace())) {
    condition = absl::StripAsciiWhitespace(condition);
    if (is_retry_condition(condition)) {
      any_known = true;
    } else {
      unknown.push_back(absl::StrCat("\"", condition, "\""));
    }
  }
  if (!unknown.empty()) {
    findings.push_back(
        {below(path, "retry_on"),
         absl::StrCat("signalbox does not know ",
                      absl::StrJoin(unknown, ", "),
                      any_known ? "" : ", so calls are not retried",
                      "; it knows cancelled, deadline-exceeded, internal, resource-exhausted, "
                      "unavailable (gRFC A44)")});
  }
  if (retries.num_retries().value() > kMostRetries) {
    findings.push_back({below(path, "num_retries"),
                        absl::StrCat("signalbox retries at most ",
                                     kMostRetries,
                                     " times (gRFC A6), found ",
                                     retries.num_retries().value())});
  }
}

void look_at_filter_state(const FilterStateProto& state,
                          const std::string& path,
                          std::vector<LintFinding>& findings) {
  if (state.key() != "io.grpc.channel_id")
    findings.push_back({below(path, "key"), std::string(kNoHash)});
}

void look_at_http_check(const HttpCheckProto& check,
                        const std::string& path,
                        std::vector<LintFinding>& findings) {
  using envoy::config::core::v3::GET;
  using envoy::config::core::v3::METHOD_UNSPECIFIED;
  if (check.method() != METHOD_UNSPECIFIED && check.method() != GET)
    findings.push_back({below(path, "method"), std::string(kNoCheck)});
}

// A valid transport_socket is always TLS (xds/parse/transport_socket).
void look_at_tls_checks(const ClusterProto& cluster,
                        const std::string& path,
                        std::vector<LintFinding>& findings) {
  if (!cluster.has_transport_socket()) return;
  for (int i = 0; i < cluster.health_checks_size(); ++i) {
    const auto& check = cluster.health_checks(i);
    const std::string place = below(path, "health_checks", i, true);
    if (check.has_http_health_check())
      findings.push_back({below(place, "http_health_check"), std::string(kNoTlsCheck)});
    const auto& tcp = check.tcp_health_check();
    if (tcp.has_send())
      findings.push_back({below(place, "tcp_health_check.send"), std::string(kNoTlsCheck)});
    if (!tcp.receive().empty())
      findings.push_back({below(place, "tcp_health_check.receive"), std::string(kNoTlsCheck)});
  }
}

// The one endpoint of a LOGICAL_DNS cluster is the address alone (gRFC A37). Weights, the locality,
// its priority and metadata cause no warning: with one endpoint they change nothing in Envoy
// either.
void look_at_dns_endpoint(const ClusterProto& cluster,
                          const std::string& path,
                          std::vector<LintFinding>& findings) {
  if (cluster.type() != ClusterProto::LOGICAL_DNS) return;
  const std::string assignment = below(path, "load_assignment");
  const auto find = [&](bool is_set, const std::string& place, absl::string_view field) {
    if (is_set) findings.push_back({absl::StrCat(place, ".", field), std::string(kNotOfDns)});
  };
  const auto& policy = cluster.load_assignment().policy();
  find(policy.drop_overloads_size() > 0, assignment, "policy.drop_overloads");
  find(policy.has_overprovisioning_factor(), assignment, "policy.overprovisioning_factor");
  for (const auto& locality : cluster.load_assignment().endpoints()) {
    for (const auto& entry : locality.lb_endpoints()) {
      const std::string place = absl::StrCat(assignment, ".endpoints[0].lb_endpoints[0]");
      const auto& endpoint = entry.endpoint();
      find(entry.health_status() != envoy::config::core::v3::UNKNOWN &&
               entry.health_status() != envoy::config::core::v3::HEALTHY,
           place,
           "health_status");
      find(endpoint.additional_addresses_size() > 0, place, "endpoint.additional_addresses");
      find(endpoint.has_health_check_config(), place, "endpoint.health_check_config");
      find(!endpoint.hostname().empty(), place, "endpoint.hostname");
    }
  }
}

// Zone-aware routing beside lb_policy has no effect if lb_policy does not choose a locality.
void look_at_common_zones(const ClusterProto& cluster,
                          const std::string& path,
                          std::vector<LintFinding>& findings) {
  const auto& common = cluster.common_lb_config();
  const std::string place = below(path, "common_lb_config");
  if (cluster.has_load_balancing_policy()) {
    const std::string what = "signalbox does not read it: load_balancing_policy decides";
    if (common.has_zone_aware_lb_config())
      findings.push_back({below(place, "zone_aware_lb_config"), what});
    if (common.has_locality_weighted_lb_config())
      findings.push_back({below(place, "locality_weighted_lb_config"), what});
  } else if (common.has_zone_aware_lb_config() && (cluster.lb_policy() == ClusterProto::RING_HASH ||
                                                   cluster.lb_policy() == ClusterProto::MAGLEV)) {
    findings.push_back({below(place, "zone_aware_lb_config"),
                        absl::StrCat("signalbox does not read it: ",
                                     ClusterProto::LbPolicy_Name(cluster.lb_policy()),
                                     " uses the endpoints of all localities")});
  }
}

// A policy below WrrLocality has the endpoints of one locality.
void look_at_zones_of_locality(const LocalityProto& proto,
                               const std::string& path,
                               std::vector<LintFinding>& findings) {
  auto others = proto.zone_aware_lb_config();
  others.clear_fail_traffic_on_panic();
  if (others.ByteSizeLong() == 0) return;
  findings.push_back({below(path, "zone_aware_lb_config"),
                      "below WrrLocality, which chooses the locality, signalbox reads "
                      "fail_traffic_on_panic alone"});
}

// Finds values that signalbox does not act on, and set fields of the endpoint of a DNS cluster.
void look_at_values(const protobuf::Message& message,
                    const std::string& path,
                    std::vector<LintFinding>& findings) {
  const protobuf::Descriptor* type = message.GetDescriptor();
  if (type == RetryProto::descriptor())
    return look_at_retries(static_cast<const RetryProto&>(message), path, findings);
  if (type == FilterStateProto::descriptor())
    return look_at_filter_state(static_cast<const FilterStateProto&>(message), path, findings);
  if (type == HttpCheckProto::descriptor())
    return look_at_http_check(static_cast<const HttpCheckProto&>(message), path, findings);
  if (type == ClusterProto::descriptor()) {
    const auto& cluster = static_cast<const ClusterProto&>(message);
    look_at_tls_checks(cluster, path, findings);
    look_at_dns_endpoint(cluster, path, findings);
    look_at_common_zones(cluster, path, findings);
  }
}

class Walk {
 public:
  explicit Walk(std::vector<LintFinding>& findings) : findings_(findings) {}

  void visit(const protobuf::Message& message, const std::string& path) {
    const protobuf::Descriptor* type = message.GetDescriptor();
    if (type == protobuf::Any::descriptor()) return visit_any(message, path);
    if (type == WrrLocalityProto::descriptor()) {
      ++wrr_localities_;
      visit_fields(message, path);
      --wrr_localities_;
      return;
    }
    if (wrr_localities_ > 0 && type == LocalityProto::descriptor())
      look_at_zones_of_locality(static_cast<const LocalityProto&>(message), path, findings_);
    look_at_values(message, path, findings_);
    visit_fields(message, path);
  }

 private:
  void visit_fields(const protobuf::Message& message, const std::string& path) {
    const protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const protobuf::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const auto* field : fields)
      visit_field(message, reflection, *field, path);
  }

  void visit_field(const protobuf::Message& message,
                   const protobuf::Reflection& reflection,
                   const protobuf::FieldDescriptor& field,
                   const std::string& path) {
    if (const UnreadField* unread = find_unread(field)) {
      findings_.push_back({below(path, field.name()), std::string(unread->what)});
      return;
    }
    if (field.cpp_type() != protobuf::FieldDescriptor::CPPTYPE_MESSAGE) return;
    if (!field.is_repeated())
      return visit(reflection.GetMessage(message, &field), below(path, field.name()));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      visit(reflection.GetRepeatedMessage(message, &field, i),
            below(path, field.name(), i, !field.is_map()));
    }
  }

  void visit_any(const protobuf::Message& message, const std::string& path) {
    const auto& any = static_cast<const protobuf::Any&>(message);
    const protobuf::Descriptor* type = find_message(any.type_url());
    if (type == nullptr) return;
    const std::unique_ptr<protobuf::Message> inner(
        protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    if (inner->ParseFromString(any.value())) visit(*inner, path);
  }

  std::vector<LintFinding>& findings_;
  int wrr_localities_ = 0;  // How many WrrLocality messages the visited message is in.
};

}  // namespace

std::vector<LintFinding> unread_fields(const ResourceBytes& resource) {
  std::vector<LintFinding> findings;
  protobuf::Any any;
  any.set_type_url(resource.type_url);
  any.set_value(resource.bytes);
  Walk(findings).visit(any, "");
  return findings;
}

}  // namespace signalbox::xds
