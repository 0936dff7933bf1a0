// SPDX-License-Identifier: Apache-2.0
#include "channel/environment_parts.hpp"

#include <utility>

#include "channel/policy_options.hpp"
#include "lb/request_limit.hpp"
#include "messages/counting/load_book.hpp"
#include "xds/client/client_options.hpp"
#include "xds/parse/response_parser.hpp"

namespace signalbox::channel {
namespace {

// Makes the decoder of one AdsSession. The decoder remembers the resources of the server's last
// responses, so that unchanged resources are not parsed again.
xds::ResponseDecoder make_decoder(ParseOptionsPtr lasting,
                                  ServerId server,
                                  bool trusted_server,
                                  GetVariable get) {
  return [lasting = std::move(lasting),
          server,
          trusted_server,
          get = std::move(get),
          known = std::make_shared<xds::KnownResources>()](std::string bytes) {
    xds::ParseOptions options = xds::parse_options_from(get, trusted_server, *lasting);
    options.server = server;
    return xds::decode_in_parts(std::move(bytes), std::move(options), known);
  };
}

}  // namespace

ParseOptionsPtr lasting_parse_options(const RuntimeOptions& options,
                                      const RegisteredLbPolicies& custom,
                                      std::shared_ptr<const xds::CustomFilters> filters,
                                      const xds::Bootstrap& bootstrap,
                                      std::shared_ptr<const std::atomic<bool>> abandoned) {
  auto lasting = std::make_shared<xds::ParseOptions>();
  lasting->limits = options.limits;
  lasting->abandoned = std::move(abandoned);
  lasting->health_checks = options.active_health_checks;
  lasting->grpc_paths_only = options.transport == EndpointTransport::kGrpc;
  lasting->custom_lb_policies = custom.parsers;
  lasting->custom_http_filters = std::move(filters);
  for (const auto& [name, files] : bootstrap.certificate_providers)
    lasting->certificate_providers.insert(name);
  return lasting;
}

std::function<xds::ResponseDecoder(ServerId)> decoders(ParseOptionsPtr lasting,
                                                       const xds::Bootstrap& bootstrap,
                                                       GetVariable get) {
  return [lasting = std::move(lasting),
          servers = xds::client_options(bootstrap).servers,
          get = std::move(get)](ServerId server) {
    return make_decoder(lasting, server, servers.at(server).trusted, get);
  };
}

LocalityName locality_of(const xds::NodeConfig& node) {
  if (!node.locality) return {};
  return {node.locality->region, node.locality->zone, node.locality->sub_zone};
}

void add_settings(const RuntimeOptions& options,
                  const xds::Bootstrap& bootstrap,
                  const GetVariable& get,
                  actors::Environment& environment) {
  environment.policy = policy_options(options, get);
  environment.policy.caller = locality_of(bootstrap.node);
  environment.node_id = bootstrap.node.id;
  environment.client = xds::client_options(bootstrap);
  environment.client.resource_timeout = options.resource_timeout;
  if (options.missing_cluster_fails_aggregate)
    environment.missing_leaf = xds::MissingLeaf::kFailAggregate;
  environment.announces_targets = options.transport != EndpointTransport::kAssumed;
  environment.subchannel.backoff.initial = options.initial_backoff;
  environment.subchannel.backoff.max = options.max_backoff;
  environment.subchannel.lost_backoff = options.lost_backoff;
  environment.subchannel.most_connections = options.max_connections_per_endpoint;
}

void add_counters(const RuntimeOptions& options,
                  const std::shared_ptr<metrics::Instruments>& instruments,
                  actors::Environment& environment) {
  environment.instruments = instruments;
  environment.policy.request_limits = lb::RequestLimits::of_process();
  environment.policy.drop_counters = instruments;
  if (options.metrics_detail == MetricsDetail::kEndpoint)
    environment.policy.endpoint_counters = instruments;
  environment.policy.metrics_by_locality = options.metrics_detail == MetricsDetail::kEndpoint;
  environment.faults = {lb::active_faults_of_process(), instruments->faults()};
}

}  // namespace signalbox::channel
