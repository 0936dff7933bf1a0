// SPDX-License-Identifier: Apache-2.0
#include "xds/client/client_options.hpp"

#include <algorithm>

namespace signalbox::xds {
namespace {

ServerOptions options_of(const ServerConfig& server) {
  return {
      .name = server.server_uri,
      .fail_on_data_errors = server.has_feature("fail_on_data_errors"),
      .resource_timer_is_transient_error = server.has_feature("resource_timer_is_transient_error"),
      .trusted = server.has_feature("trusted_xds_server")};
}

}  // namespace

ClientOptions client_options(const Bootstrap& bootstrap) {
  ClientOptions options;
  options.node_id = bootstrap.node.id;
  options.servers.clear();
  if (bootstrap.resources_file) {
    options.servers.push_back({.name = *bootstrap.resources_file, .trusted = true});
  }
  const std::size_t first = options.servers.size();
  const std::vector<ServerConfig> distinct = distinct_servers(bootstrap);
  for (const ServerConfig& server : distinct)
    options.servers.push_back(options_of(server));

  const auto numbers_of = [&](const std::vector<ServerConfig>& servers) {
    if (servers.empty()) return std::vector<ServerId>{0};
    std::vector<ServerId> numbers;
    for (const ServerConfig& server : servers) {
      const auto place = std::ranges::find(distinct, server) - distinct.begin();
      const ServerId number = first + static_cast<std::size_t>(place);
      if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
    }
    return numbers;
  };
  options.default_servers = numbers_of(bootstrap.servers);
  for (const auto& [name, authority] : bootstrap.authorities)
    options.authorities.emplace(name, numbers_of(authority.servers));
  return options;
}

}  // namespace signalbox::xds
