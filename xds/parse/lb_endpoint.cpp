// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/lb_endpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/header_rules.hpp"
#include "xds/parse/address.hpp"
#include "xds/parse/endpoint_metadata.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using HealthCheckConfigProto = envoy::config::endpoint::v3::Endpoint::HealthCheckConfig;

void add_address(const envoy::config::core::v3::Address& proto,
                 Endpoint& endpoint,
                 EndpointsSoFar& so_far,
                 const Field& field) {
  const std::size_t errors_before = field.errors_so_far();
  std::string text = parse_address(proto, field);
  if (field.errors_so_far() != errors_before) return;
  Address address = so_far.known.address(std::move(text));
  if (!so_far.addresses.insert(address).second) {
    field.add(absl::StrCat("must be unique in the cluster, found ", address.str(), " again"));
  }
  endpoint.addresses.push_back(std::move(address));
}

// Stores no exception if an error of the endpoint was found before: its address may then also be
// that of a valid endpoint.
void parse_probe_exception(const HealthCheckConfigProto& proto,
                           const Endpoint& endpoint,
                           EndpointsSoFar& so_far,
                           std::size_t errors_before,
                           const Field& field) {
  if (!field.options().health_checks) return;
  const ProbeException exception{proto.disable_active_health_check(), proto.port_value()};
  if (exception == ProbeException{}) return;
  if (exception.port > kMaxPort) {
    field.at("port_value")
        .add(absl::StrCat("must be at most ", kMaxPort, ", found ", exception.port));
  }
  if (field.errors_so_far() != errors_before) return;
  for (const Address& address : endpoint.addresses)
    so_far.exceptions.insert_or_assign(address, exception);
}

}  // namespace

Endpoint parse_lb_endpoint(const envoy::config::endpoint::v3::LbEndpoint& proto,
                           HealthStatus health,
                           EndpointsSoFar& so_far,
                           const Field& field) {
  const std::size_t errors_before = field.errors_so_far();
  Endpoint endpoint;
  endpoint.health = health;
  if (proto.has_load_balancing_weight()) {
    endpoint.weight = proto.load_balancing_weight().value();
    if (endpoint.weight == 0) {
      field.at("load_balancing_weight").add("must be greater than 0, found 0");
    }
  }
  const Field host = field.at("endpoint");
  if (!proto.has_endpoint()) {
    host.add("must be set, found none");
    return endpoint;
  }
  const auto& addresses = proto.endpoint();
  const int more = field.options().dualstack_endpoints ? addresses.additional_addresses_size() : 0;
  endpoint.addresses.reserve(1 + static_cast<std::size_t>(more));
  add_address(addresses.address(), endpoint, so_far, host.at("address"));
  for (int i = 0; i < more; ++i) {
    const Field additional = host.at("additional_addresses", static_cast<std::size_t>(i));
    add_address(
        addresses.additional_addresses(i).address(), endpoint, so_far, additional.at("address"));
  }
  if (addresses.has_health_check_config()) {
    parse_probe_exception(addresses.health_check_config(),
                          endpoint,
                          so_far,
                          errors_before,
                          host.at("health_check_config"));
  }
  require_name_length(addresses.hostname(), host.at("hostname"));
  if (!is_header_value(":authority", addresses.hostname())) {
    host.at("hostname")
        .add(absl::StrCat("must be printable ASCII, found ", in_quotes(addresses.hostname())));
  }
  endpoint.hostname = addresses.hostname();
  if (proto.has_metadata()) {
    const Field metadata = field.at("metadata");
    endpoint.hash_key = hash_key_of(proto.metadata(), metadata);
    check_http_proxy(proto.metadata(), metadata);
  }
  return endpoint;
}

}  // namespace signalbox::xds
