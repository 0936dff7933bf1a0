// SPDX-License-Identifier: Apache-2.0
#include "xds/client_status.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/xds/type/v3/typed_struct.pb.h"
#include "xds/redacted_resource.hpp"
#include "xds/redaction.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::status::v3::ClientStatusRequest;

ResourceState cluster_state(const std::string& bytes) {
  ResourceState state;
  state.key = {ResourceType::kCluster, "orders"};
  state.bytes = std::make_shared<const std::string>(bytes);
  return state;
}

}  // namespace

TEST_CASE("client_status: one ClientConfig with the states of A40 and A88",
          "[xds][csds][A40][A88]") {
  struct Row {
    ResourceStatus status;
    envoy::admin::v3::ClientResourceStatus wanted;
  };

  const auto row = GENERATE(values<Row>({
      {ResourceStatus::kRequested, envoy::admin::v3::REQUESTED},
      {ResourceStatus::kDoesNotExist, envoy::admin::v3::DOES_NOT_EXIST},
      {ResourceStatus::kAcked, envoy::admin::v3::ACKED},
      {ResourceStatus::kNacked, envoy::admin::v3::NACKED},
      {ResourceStatus::kReceivedError, envoy::admin::v3::RECEIVED_ERROR},
      {ResourceStatus::kTimeout, envoy::admin::v3::TIMEOUT},
  }));
  ResourceState state;
  state.key = {ResourceType::kEndpoints, "orders"};
  state.status = row.status;
  state.version = "6";
  state.updated = WallTime(std::chrono::milliseconds(1'700'000'000'250));
  state.failure = ResourceFailure{"why", "7", WallTime(std::chrono::seconds(1'700'000'001))};
  const auto response = client_status({.node_id = "me", .resources = {state}}, {});
  REQUIRE(response.config_size() == 1);
  CHECK(response.config(0).node().id() == "me");
  REQUIRE(response.config(0).generic_xds_configs_size() == 1);
  const auto& shown = response.config(0).generic_xds_configs(0);
  CHECK(shown.type_url() == "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment");
  CHECK(shown.name() == "orders");
  CHECK(shown.client_status() == row.wanted);
  CHECK(shown.version_info() == "6");
  CHECK(shown.last_updated().seconds() == 1'700'000'000);
  CHECK(shown.last_updated().nanos() == 250'000'000);
  CHECK_FALSE(shown.has_xds_config());
  CHECK(shown.error_state().details() == "why");
  CHECK(shown.error_state().version_info() == "7");
  CHECK(shown.error_state().last_update_attempt().seconds() == 1'700'000'001);
}

TEST_CASE("client_status: a resource that never came has a time of update, which is 0",
          "[xds][csds][A40]") {
  ResourceState state;
  state.key = {ResourceType::kEndpoints, "orders"};
  state.status = ResourceStatus::kRequested;
  const auto response = client_status({.node_id = "me", .resources = {state}}, {});
  const auto& shown = response.config(0).generic_xds_configs(0);
  CHECK(shown.has_last_updated());
  CHECK(shown.last_updated().seconds() == 0);
}

TEST_CASE("client_status: a resource is shown unless the request excludes contents",
          "[xds][csds][A40]") {
  envoy::config::cluster::v3::Cluster cluster;
  cluster.set_name("orders");
  const ResourceDump dump{.resources = {cluster_state(cluster.SerializeAsString())}};
  const auto whole = client_status(dump, {});
  const auto& shown = whole.config(0).generic_xds_configs(0).xds_config();
  CHECK(shown.type_url() == "type.googleapis.com/envoy.config.cluster.v3.Cluster");
  envoy::config::cluster::v3::Cluster read;
  REQUIRE(read.ParseFromString(shown.value()));
  CHECK(read.SerializeAsString() == cluster.SerializeAsString());

  ClientStatusRequest request;
  request.set_exclude_resource_contents(true);
  CHECK_FALSE(client_status(dump, request).config(0).generic_xds_configs(0).has_xds_config());
}

TEST_CASE("client_status: bytes that cannot be decoded are shown as their type only",
          "[xds][csds]") {
  const ResourceDump dump{.resources = {cluster_state("\xFF\xFF")}};
  const auto response = client_status(dump, {});
  CHECK_FALSE(response.config(0).generic_xds_configs(0).xds_config().type_url().empty());
  CHECK(response.config(0).generic_xds_configs(0).xds_config().value().empty());
}

TEST_CASE("client_status: node_matchers are refused", "[xds][csds]") {
  ClientStatusRequest request;
  CHECK(check(request).ok());
  request.add_node_matchers();
  CHECK(absl::IsInvalidArgument(check(request)));
}

TEST_CASE("redacted_resource: secrets are replaced in the message too", "[xds][csds][redaction]") {
  envoy::config::route::v3::RouteConfiguration routes;
  auto& header = *routes.add_virtual_hosts()->add_routes()->mutable_match()->add_headers();
  header.set_name("authorization");
  header.mutable_string_match()->set_exact("Bearer hush");
  const auto shown =
      ResourceRedactor().bytes(kRouteConfigurationTypeUrl, routes.SerializeAsString());
  REQUIRE(shown);
  CHECK(shown->find("hush") == std::string::npos);
  CHECK(shown->find("authorization") != std::string::npos);

  xds::type::v3::TypedStruct own;
  own.set_type_url("type.googleapis.com/own");
  auto& fields = *own.mutable_value()->mutable_fields();
  fields["password"].set_number_value(4711);
  fields["size"].set_number_value(5);
  const auto kept =
      ResourceRedactor().bytes(type_url_of<xds::type::v3::TypedStruct>(), own.SerializeAsString());
  REQUIRE(kept);
  REQUIRE(own.ParseFromString(*kept));
  CHECK(own.value().fields().at("password").string_value() == kRedacted);
  CHECK(own.value().fields().at("size").number_value() == 5);
}

}  // namespace signalbox::xds
