// SPDX-License-Identifier: Apache-2.0
#include "xds/dump_json.hpp"

#include <chrono>
#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "xds/redaction.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using Json = nlohmann::ordered_json;
using Catch::Matchers::Contains;

constexpr const char* kResources = R"(
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: orders
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        route_config:
          virtual_hosts:
            - domains: ["*"]
              routes:
                - match:
                    prefix: /a
                    headers:
                      - {name: Authorization, string_match: {exact: Bearer hush}}
                      - {name: tenant, string_match: {exact: acme}}
                  route: {cluster: a}
                - match: {prefix: /b, headers: [{name: cookie, exact_match: hush}]}
                  route: {cluster: b}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    connect_timeout: 5s
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {validation_context: {system_root_certs: {}}}
    load_balancing_policy:
      policies:
        - typed_extension_config:
            name: own
            typed_config:
              "@type": type.googleapis.com/xds.type.v3.TypedStruct
              type_url: type.googleapis.com/own
              value: {adminPassword: hush, api-key: [hush], nested: {token: hush}, max_tokens: 5, tokenBucket: full}
)";

std::shared_ptr<const std::string> bytes_of(std::size_t index) {
  const auto resources = parse_resources_text(kResources, Format::kYaml, "test.yaml");
  INFO(resources.status().ToString());
  REQUIRE(resources.ok());
  return std::make_shared<const std::string>(resources->at(index).bytes);
}

WallTime at(std::int64_t milliseconds) {
  return WallTime(std::chrono::milliseconds(milliseconds));
}

Json only(const ResourceState& state) {
  const Json json = to_json(ResourceDump{.resources = {state}});
  REQUIRE(json.at("generic_xds_configs").size() == 1);
  return json.at("generic_xds_configs")[0];
}

Json config_of(ResourceType type, std::shared_ptr<const std::string> bytes) {
  ResourceState state;
  state.key = {type, "orders"};
  state.bytes = std::move(bytes);
  return only(state).at("xds_config");
}

}  // namespace

TEST_CASE("dump_json: the configurations that picks have seen, with versions and times",
          "[xds][dump]") {
  ResourceDump dump;
  CHECK_FALSE(to_json(dump).contains("applied_configs"));
  dump.applied = {
      {"xds:///orders", 1, {"7", "", "8", "9"}, at(1'700'000'000'250), at(1'700'000'000'255)},
      {"xds:///orders", 2, {"7", "", "8", "9"}, std::nullopt, at(1'700'000'001'005)}};
  const Json wanted = Json::parse(R"([
    {"target": "xds:///orders", "generation": 1,
     "versions": {"LDS": "7", "CDS": "8", "EDS": "9"},
     "received_at": "2023-11-14T22:13:20.250Z", "served_at": "2023-11-14T22:13:20.255Z"},
    {"target": "xds:///orders", "generation": 2,
     "versions": {"LDS": "7", "CDS": "8", "EDS": "9"}, "served_at": "2023-11-14T22:13:21.005Z"}
  ])");
  CHECK(to_json(dump).at("applied_configs") == wanted);
}

TEST_CASE("dump_json: every state has the API's fields, and what is empty is left out",
          "[xds][dump][A40][A88]") {
  ResourceState base;
  base.key = {ResourceType::kEndpoints, "orders"};
  base.server = "xds.example:443";
  const ResourceFailure failure{"why", "7", at(1'700'000'001'005)};

  struct Row {
    ResourceStatus status;
    bool cached;
    bool failed;
    const char* status_text;
  };

  const auto row = GENERATE(values<Row>({
      {ResourceStatus::kRequested, false, false, "REQUESTED"},
      {ResourceStatus::kDoesNotExist, false, true, "DOES_NOT_EXIST"},
      {ResourceStatus::kDoesNotExist, true, true, "DOES_NOT_EXIST"},
      {ResourceStatus::kAcked, true, false, "ACKED"},
      {ResourceStatus::kNacked, false, true, "NACKED"},
      {ResourceStatus::kNacked, true, true, "NACKED"},
      {ResourceStatus::kReceivedError, true, true, "RECEIVED_ERROR"},
      {ResourceStatus::kTimeout, false, true, "TIMEOUT"},
  }));
  ResourceState state = base;
  state.status = row.status;
  Json wanted{
      {"type_url", "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"},
      {"name", "orders"},
      {"client_status", row.status_text},
  };
  if (row.cached) {
    state.version = "6";
    state.updated = at(1'700'000'000'250);
    state.bytes = std::make_shared<const std::string>("\x0a\x06orders");
    wanted["version_info"] = "6";
    wanted["last_updated"] = "2023-11-14T22:13:20.250Z";
    wanted["xds_config"] = {
        {"@type", "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"},
        {"cluster_name", "orders"}};
  }
  if (row.failed) {
    state.failure = failure;
    wanted["error_state"] = {{"details", "why"},
                             {"version_info", "7"},
                             {"last_update_attempt", "2023-11-14T22:13:21.005Z"}};
  }
  wanted["xds_server"] = "xds.example:443";
  CHECK(only(state).dump(1) == wanted.dump(1));
}

TEST_CASE("dump_json: who we are and whom we ask stands above the resources",
          "[xds][dump][A40][A71]") {
  ResourceDump dump;
  dump.node_id = "me";
  dump.servers = {{"a:1", true, ""}, {"b:2", false, "refused"}};
  CHECK(to_json(dump) == Json::parse(R"({
    "node": {"id": "me"},
    "xds_servers": [{"server_uri": "a:1", "connected": true},
                    {"server_uri": "b:2", "connected": false, "error": "refused"}],
    "generic_xds_configs": []})"));
}

TEST_CASE("dump_json: a resource is shown with the API's names, an Any by its type",
          "[xds][dump][A40]") {
  const Json json = config_of(ResourceType::kCluster, bytes_of(1));
  CHECK(json.at("@type") == "type.googleapis.com/envoy.config.cluster.v3.Cluster");
  CHECK(json.at("connect_timeout") == "5s");
  CHECK(json.at("transport_socket").at("typed_config").at("@type") ==
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext");
}

TEST_CASE("dump_json: an Any that nobody knows does not hide the resource around it",
          "[xds][dump]") {
  envoy::config::cluster::v3::Cluster cluster;
  cluster.set_name("orders");
  auto* any = cluster.mutable_transport_socket()->mutable_typed_config();
  any->set_type_url("type.googleapis.com/example.Unknown");
  any->set_value("\x0a\x04hush");
  const Json json = config_of(ResourceType::kCluster,
                              std::make_shared<const std::string>(cluster.SerializeAsString()));
  CHECK(json.at("name") == "orders");
  CHECK(json.at("transport_socket").at("typed_config") ==
        Json{{"@type", "type.googleapis.com/example.Unknown"}});
}

TEST_CASE("dump_json: bytes that are no resource do no harm, and nothing of them is shown",
          "[xds][dump]") {
  const Json json =
      config_of(ResourceType::kCluster, std::make_shared<const std::string>("\xff\xffhush"));
  CHECK(json.at("@type") == std::string(kClusterTypeUrl));
  CHECK_THAT(json.dump(), !Contains("hush"));
}

TEST_CASE("dump_json: text that is no UTF-8 is replaced", "[xds][dump]") {
  ResourceState state;
  state.key = {ResourceType::kCluster, "a\xff"};
  CHECK(Json::accept(to_json_text(ResourceDump{.resources = {state}})));
}

TEST_CASE("dump_json: no secret of a resource is shown, at any depth", "[xds][dump]") {
  for (const std::size_t index : {0, 1}) {
    const std::string text =
        config_of(index == 0 ? ResourceType::kListener : ResourceType::kCluster, bytes_of(index))
            .dump(1);
    CHECK_THAT(text, !Contains("hush"));
    CHECK_THAT(text, Contains(std::string(kRedacted)));
    // Fields that are not secret are shown.
    CHECK_THAT(text, index == 0 ? Contains("acme") : Contains("\"tokenBucket\": \"full\""));
  }
}

TEST_CASE("redaction: by name, in any spelling", "[xds][dump]") {
  struct Row {
    const char* before;
    const char* after;
  };

  const auto row = GENERATE(values<Row>({
      {R"({"private_key": "x"})", R"({"private_key": "[redacted]"})"},
      {R"({"privateKey": {"filename": "x"}})", R"({"privateKey": "[redacted]"})"},
      {R"({"Private-Key": ["x"]})", R"({"Private-Key": "[redacted]"})"},
      {R"({"db_password": "x"})", R"({"db_password": "[redacted]"})"},
      {R"({"pin_token": 1234})", R"({"pin_token": "[redacted]"})"},
      {R"({"authorization": "x"})", R"({"authorization": "[redacted]"})"},
      {R"({"certificate_chain": {"inline_bytes": "x", "filename": "f"}})",
       R"({"certificate_chain": {"inline_bytes": "[redacted]", "filename": "f"}})"},
      {R"([{"secret": "x"}])", R"([{"secret": "[redacted]"}])"},
      {R"({"signing_key": "x", "passwd": "x", "passphrase": "x", "credentials": {"a": 1}})",
       R"({"signing_key": "[redacted]", "passwd": "[redacted]", "passphrase": "[redacted]",
           "credentials": "[redacted]"})"},
      {R"({"tokens": ["x"], "max_tokens": 3})", R"({"tokens": "[redacted]", "max_tokens": 3})"},
      {R"({"tls_certificate": {"inline_string": "x"}})",
       R"({"tls_certificate": {"inline_string": "[redacted]"}})"},
      {R"({"name": "x-api-key", "exact_match": "x"})",
       R"({"name": "x-api-key", "exact_match": "[redacted]"})"},
      {R"({"name": "Proxy-Authorization", "safe_regex_match": {"regex": "x"}})",
       R"({"name": "Proxy-Authorization", "safe_regex_match": "[redacted]"})"},
      {R"({"header_name": "authorization", "regex_rewrite": {"substitution": "x"}})",
       R"({"header_name": "authorization", "regex_rewrite": "[redacted]"})"},
      {R"({"key": "authorization", "value": "Bearer x"})",
       R"({"key": "authorization", "value": "[redacted]"})"},
      {R"({"key": "region", "value": "eu"})", R"({"key": "region", "value": "eu"})"},
      {R"({"name": "Set-Cookie", "contains_match": "x", "present_match": true})",
       R"({"name": "Set-Cookie", "contains_match": "[redacted]", "present_match": true})"},
      {R"({"secret": {}, "token": null, "password": ""})",
       R"({"secret": {}, "token": null, "password": "[redacted]"})"},
      {R"({"cookie": {"name": "session"}, "token_bucket": {"max_tokens": 1}})",
       R"({"cookie": {"name": "session"}, "token_bucket": {"max_tokens": 1}})"},
      {R"({"name": "path", "exact_match": "x"})", R"({"name": "path", "exact_match": "x"})"},
      // The fields of an extension's Struct may have JSON's own spelling.
      {R"({"headerName": "authorization", "regexRewrite": {"substitution": "x"}})",
       R"({"headerName": "authorization", "regexRewrite": "[redacted]"})"},
      {R"({"name": "x-api-key", "exactMatch": "x", "invertMatch": true, "other": "y"})",
       R"({"name": "x-api-key", "exactMatch": "[redacted]", "invertMatch": true, "other": "y"})"},
      {R"({"Key": "cookie", "rawValue": "x"})", R"({"Key": "cookie", "rawValue": "[redacted]"})"},
      {R"({"name": "new-token", "match": {"prefix": "/"}})",
       R"({"name": "new-token", "match": {"prefix": "/"}})"},
      {R"({"headerName": "region", "exactMatch": "eu"})",
       R"({"headerName": "region", "exactMatch": "eu"})"},
  }));
  Json value = Json::parse(row.before);
  redact(value);
  CHECK(value == Json::parse(row.after));
}

}  // namespace signalbox::xds
