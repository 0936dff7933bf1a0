// SPDX-License-Identifier: Apache-2.0
#include "xds/client/client_options.hpp"

#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

using Servers = std::vector<ServerId>;

ServerConfig server(const std::string& uri, const std::vector<std::string>& features = {}) {
  return {uri, InsecureCredentials{}, features};
}

}  // namespace

TEST_CASE("client options: equal servers are one, whoever names them", "[xds][client][A47][A71]") {
  Bootstrap bootstrap;
  bootstrap.node.id = "n";
  bootstrap.servers = {server("a"), server("b"), server("a")};
  bootstrap.authorities["east"].servers = {server("c"), server("b")};
  bootstrap.authorities["west"].servers = {server("b", {"fail_on_data_errors"})};
  bootstrap.authorities["none"] = {};
  const ClientOptions options = client_options(bootstrap);
  CHECK(options.node_id == "n");
  CHECK(options.default_servers == Servers{0, 1});
  CHECK(options.authorities ==
        std::map<std::string, Servers>{{"east", {2, 1}}, {"none", {0}}, {"west", {3}}});
  REQUIRE(options.servers.size() == 4);
  REQUIRE(distinct_servers(bootstrap).size() == 4);
  for (ServerId id = 0; id < 4; ++id)
    CHECK(options.servers[id].name == distinct_servers(bootstrap)[id].server_uri);
}

TEST_CASE("client options: each server has its own features", "[xds][client][A53][A88]") {
  Bootstrap bootstrap;
  bootstrap.servers = {server("a", {"xds_v3", "ignore_resource_deletion"}),
                       server("b", {"fail_on_data_errors"}),
                       server("c", {"resource_timer_is_transient_error"})};
  const ClientOptions options = client_options(bootstrap);
  REQUIRE(options.servers.size() == 3);
  CHECK_FALSE(options.servers[0].fail_on_data_errors);
  CHECK_FALSE(options.servers[0].resource_timer_is_transient_error);
  CHECK(options.servers[1].fail_on_data_errors);
  CHECK_FALSE(options.servers[1].resource_timer_is_transient_error);
  CHECK_FALSE(options.servers[2].fail_on_data_errors);
  CHECK(options.servers[2].resource_timer_is_transient_error);
}

TEST_CASE("client options: servers are trusted where the bootstrap says so, and its file is",
          "[xds][client][A81]") {
  Bootstrap bootstrap;
  bootstrap.servers = {server("a", {"xds_v3"}), server("b", {"trusted_xds_server"})};
  const ClientOptions options = client_options(bootstrap);
  REQUIRE(options.servers.size() == 2);
  CHECK_FALSE(options.servers[0].trusted);
  CHECK(options.servers[1].trusted);
  Bootstrap of_file;
  of_file.resources_file = "resources.yaml";
  CHECK(client_options(of_file).servers.at(0).trusted);
}

TEST_CASE("client options: a resource file is the server of all that have none",
          "[xds][client][file]") {
  Bootstrap bootstrap;
  bootstrap.resources_file = "resources.yaml";
  bootstrap.authorities["east"] = {};
  bootstrap.authorities["west"].servers = {server("w")};
  const ClientOptions options = client_options(bootstrap);
  REQUIRE(options.servers.size() == 2);
  CHECK(options.servers[0].name == "resources.yaml");
  CHECK(options.default_servers == Servers{0});
  CHECK(options.authorities == std::map<std::string, Servers>{{"east", {0}}, {"west", {1}}});
}

}  // namespace signalbox::xds
