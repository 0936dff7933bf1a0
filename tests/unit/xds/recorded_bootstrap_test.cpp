// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap of a recording: all that a replay needs, and no secret.
#include "xds/record/recorded_bootstrap.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "xds/client/client_options.hpp"

namespace signalbox::xds {
namespace {

using Catch::Matchers::Contains;

/// Values that must not be in a recording have "secret" in them.
const char kServers[] = R"({
  "xds_servers": [
    {"server_uri": "plane:443",
     "channel_creds": [{"type": "tls", "config": {"ca_certificate_file": "/secret/ca.pem"}}],
     "server_features": ["xds_v3", "fail_on_data_errors"]},
    {"server_uri": "plane:443",
     "channel_creds": [{"type": "tls", "config": {"certificate_file": "/secret/a.pem",
                                                  "private_key_file": "/secret/a.key"}}],
     "server_features": ["xds_v3", "fail_on_data_errors"]},
    {"server_uri": "plane:443",
     "channel_creds": [{"type": "later", "config": {"token": "secret"}}, {"type": "insecure"}],
     "server_features": ["xds_v3", "fail_on_data_errors"]}],
  "authorities": {
    "a.example": {
      "client_listener_resource_name_template": "xdstp://a.example/listeners/%s",
      "xds_servers": [
        {"server_uri": "plane:443",
         "channel_creds": [{"type": "tls", "config": {"certificate_file": "/secret/a.pem",
                                                      "private_key_file": "/secret/a.key"}}],
         "server_features": ["xds_v3", "fail_on_data_errors"]},
        {"server_uri": "other:443", "channel_creds": [{"type": "tls"}]}]},
    "b.example": {}},
  "certificate_providers": {
    "mine": {"plugin_name": "file_watcher", "config": {"certificate_file": "/secret/b.pem",
                                                       "private_key_file": "/secret/b.key"}},
    "later": {"plugin_name": "secret_service", "config": {"token": "secret"}}},
  "node": {"id": "orders-1",
           "cluster": "orders",
           "locality": {"region": "r", "zone": "z", "sub_zone": "s"},
           "metadata": {"TOKEN": "secret"}},
  "client_default_listener_resource_name_template": "xdstp://a.example/default/%s"})";

const char kFile[] = R"({
  "signalbox.resources": "/etc/resources.yaml",
  "authorities": {"a.example": {"xds_servers": [
    {"server_uri": "plane:443", "channel_creds": [{"type": "tls"}]}]}},
  "node": {"metadata": {"TOKEN": "secret"}}})";

Bootstrap parsed(const std::string& text) {
  auto bootstrap = parse_bootstrap(text, "the test");
  INFO(bootstrap.status().message());
  REQUIRE(bootstrap.ok());
  return *std::move(bootstrap);
}

/// The bootstrap without what is never recorded.
Bootstrap without_secrets(Bootstrap bootstrap) {
  const auto strip = [](std::vector<ServerConfig>& servers) {
    for (ServerConfig& server : servers)
      server.channel_creds = {};
  };
  strip(bootstrap.servers);
  for (auto& [name, authority] : bootstrap.authorities)
    strip(authority.servers);
  for (auto& [name, files] : bootstrap.certificate_providers)
    files = {};
  bootstrap.node.metadata_json.clear();
  return bootstrap;
}

}  // namespace

TEST_CASE("recorded bootstrap: credentials, certificates and the node's metadata are left out",
          "[recording]") {
  const Bootstrap bootstrap = parsed(GENERATE(kServers, kFile));
  const std::string text = recorded_bootstrap(bootstrap);
  CHECK_THAT(text, !Contains("secret"));
  CHECK(without_secrets(parsed(text)) == without_secrets(bootstrap));
}

TEST_CASE("recorded bootstrap: servers that differ in their credentials stay different servers",
          "[recording]") {
  const Bootstrap bootstrap = parsed(GENERATE(kServers, kFile));
  const ClientOptions before = client_options(bootstrap);
  const ClientOptions after = client_options(parsed(recorded_bootstrap(bootstrap)));
  CHECK(after.servers.size() == before.servers.size());
  CHECK(after.default_servers == before.default_servers);
  CHECK(after.authorities == before.authorities);
}

}  // namespace signalbox::xds
