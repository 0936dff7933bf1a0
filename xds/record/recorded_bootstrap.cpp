// SPDX-License-Identifier: Apache-2.0
#include "xds/record/recorded_bootstrap.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

namespace signalbox::xds {
namespace {

using nlohmann::json;

// Writes servers. Equal credentials get equal placeholders, in all lists of one bootstrap.
class ServerWriter {
 public:
  json operator()(const std::vector<ServerConfig>& servers) {
    json list = json::array();
    for (const ServerConfig& server : servers) {
      list.push_back({{"server_uri", server.server_uri},
                      {"channel_creds", json::array({placeholder(server.channel_creds)})},
                      {"server_features", server.server_features}});
    }
    return list;
  }

 private:
  json placeholder(const ChannelCredentials& credentials) {
    if (std::holds_alternative<InsecureCredentials>(credentials)) return {{"type", "insecure"}};
    const auto number = std::ranges::find(seen_, credentials) - seen_.begin();
    if (number == std::ssize(seen_)) seen_.push_back(credentials);
    return {{"type", "tls"},
            {"config", {{"ca_certificate_file", absl::StrCat("/not-recorded/", number)}}}};
  }

  std::vector<ChannelCredentials> seen_;
};

json node_json(const NodeConfig& node) {
  json result = {{"id", node.id}, {"cluster", node.cluster}};
  if (node.locality) {
    result["locality"] = {{"region", node.locality->region},
                          {"zone", node.locality->zone},
                          {"sub_zone", node.locality->sub_zone}};
  }
  return result;
}

}  // namespace

std::string recorded_bootstrap(const Bootstrap& bootstrap) {
  ServerWriter servers_json;
  json result = {{"node", node_json(bootstrap.node)},
                 {"client_default_listener_resource_name_template",
                  bootstrap.client_default_listener_resource_name_template}};
  if (!bootstrap.servers.empty()) result["xds_servers"] = servers_json(bootstrap.servers);
  if (bootstrap.resources_file) result["signalbox.resources"] = *bootstrap.resources_file;
  for (const auto& [name, authority] : bootstrap.authorities) {
    json& entry = result["authorities"][name] = json::object();
    if (!authority.servers.empty()) entry["xds_servers"] = servers_json(authority.servers);
    if (!authority.client_listener_resource_name_template.empty()) {
      entry["client_listener_resource_name_template"] =
          authority.client_listener_resource_name_template;
    }
  }
  for (const auto& [name, files] : bootstrap.certificate_providers) {
    result["certificate_providers"][name] = {
        {"plugin_name", "file_watcher"}, {"config", {{"ca_certificate_file", "/not-recorded"}}}};
  }
  return result.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

}  // namespace signalbox::xds
