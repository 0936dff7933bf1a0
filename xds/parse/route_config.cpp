// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/route_config.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "xds/parse/http_filter.hpp"
#include "xds/parse/retry_policy.hpp"
#include "xds/parse/route_action.hpp"
#include "xds/parse/route_match.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using RouteProto = envoy::config::route::v3::Route;
using VirtualHostProto = envoy::config::route::v3::VirtualHost;
using envoy::config::route::v3::RouteConfiguration;

// "*", "*suffix", "prefix*" or a whole name: one star at most, at one end.
bool is_domain_pattern(absl::string_view domain) {
  const std::size_t star = domain.find('*');
  if (star == absl::string_view::npos) return !domain.empty();
  const bool single = domain.rfind('*') == star;
  return single && (star == 0 || star == domain.size() - 1);
}

// Domains are compared without case, and must be unique in the whole resource.
void parse_domains(const VirtualHostProto& proto,
                   VirtualHost& host,
                   absl::flat_hash_set<std::string>& seen,
                   const Field& field) {
  if (proto.domains().empty()) field.at("domains").add("must have at least one entry, found 0");
  for (int i = 0; i < proto.domains_size() && !field.is_enough(); ++i) {
    const Field place = field.at("domains", static_cast<std::size_t>(i));
    const std::string& domain = proto.domains(i);
    require_name(domain, place);
    if (!domain.empty() && !is_domain_pattern(domain)) {
      place.add(absl::StrCat("must be a name, *, *suffix or prefix*, found ", in_quotes(domain)));
    }
    if (!seen.insert(absl::AsciiStrToLower(domain)).second) {
      place.add(absl::StrCat("must be unique, found ", in_quotes(domain), " again"));
    }
    host.domains.push_back(domain);
  }
}

// Parses one route; nullopt: the route is left out, or an error was added.
std::optional<Route> parse_route(const RouteProto& proto,
                                 const std::optional<RetryPolicy>& host_retry,
                                 const Field& field) {
  if (!proto.has_match()) {
    field.at("match").add("must be set, found none");
    return std::nullopt;
  }
  // Query parameters never match a gRPC call (A28).
  if (proto.match().query_parameters_size() > 0) return std::nullopt;
  // A route that no gRPC call can match is left out. Otherwise its clusters would be watched and
  // waited for in vain.
  if (field.options().grpc_paths_only && !can_match_grpc(proto.match())) return std::nullopt;
  Route route;
  require_name_length(proto.name(), field.at("name"));
  route.name = proto.name();
  route.match = parse_route_match(proto.match(), field.at("match"));
  route.filter_overrides = parse_filter_overrides(proto.typed_per_filter_config(), field);
  auto action = parse_route_action(proto, host_retry, field);
  if (!action.has_value()) return std::nullopt;
  route.action = *std::move(action);
  return route;
}

VirtualHost parse_virtual_host(const VirtualHostProto& proto,
                               absl::flat_hash_set<std::string>& domains,
                               const Field& field) {
  VirtualHost host;
  require_name_length(proto.name(), field.at("name"));
  host.name = proto.name();
  parse_domains(proto, host, domains, field);
  host.filter_overrides = parse_filter_overrides(proto.typed_per_filter_config(), field);
  std::optional<RetryPolicy> retry;
  if (proto.has_retry_policy())
    retry = parse_retry_policy(proto.retry_policy(), field.at("retry_policy"));
  for (int i = 0; i < proto.routes_size() && !field.is_enough(); ++i) {
    auto route =
        parse_route(proto.routes(i), retry, field.at("routes", static_cast<std::size_t>(i)));
    if (route.has_value()) host.routes.push_back(*std::move(route));
  }
  return host;
}

bool within_route_limit(const RouteConfiguration& proto, const Field& field) {
  std::size_t routes = 0;
  for (const VirtualHostProto& host : proto.virtual_hosts()) {
    routes += static_cast<std::size_t>(host.routes_size());
  }
  const std::size_t most = field.options().limits.max_routes;
  if (routes <= most) return true;
  field.at("virtual_hosts")
      .add_over_limit("max_routes",
                      absl::StrCat("must have at most ", most, " routes in all, found ", routes));
  return false;
}

}  // namespace

RouteConfig to_route_config(const RouteConfiguration& proto, const Field& field) {
  RouteConfig config;
  config.name = proto.name();
  if (!within_route_limit(proto, field)) return config;
  absl::flat_hash_set<std::string> domains;
  for (int i = 0; i < proto.virtual_hosts_size() && !field.is_enough(); ++i) {
    config.virtual_hosts.push_back(parse_virtual_host(
        proto.virtual_hosts(i), domains, field.at("virtual_hosts", static_cast<std::size_t>(i))));
  }
  return config;
}

ReceivedResource parse_route_config(absl::string_view bytes, const ParseOptions& options) {
  RouteConfiguration proto;
  if (!decode(bytes, proto))
    return undecodable("RDS", "a RouteConfiguration", bytes, proto, proto.name());
  ValidationErrors errors(options);
  require_name(proto.name(), errors.top().at("name"));
  auto config = std::make_shared<const RouteConfig>(to_route_config(proto, errors.top()));
  if (!errors.empty()) return errors.refuse("RDS", proto.name());
  return {proto.name(), Resource{std::move(config)}};
}

}  // namespace signalbox::xds
