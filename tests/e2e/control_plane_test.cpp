// SPDX-License-Identifier: Apache-2.0
//
// signalbox's control plane against a raw ADS client: bytes over a real gRPC stream, no signalbox
// client.
#include "tools/control_plane.hpp"

#include <memory>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/e2e/raw_client.hpp"
#include "tests/support/discovery_record.hpp"
#include "tests/support/process.hpp"
#include "xds/type_url.hpp"

namespace signalbox::tools {
namespace {

using envoy::config::cluster::v3::Cluster;
using envoy::service::discovery::v3::DiscoveryRequest;
using test::Names;
using test::names_in;
using test::RawClient;
using test::received;

const std::string kCds(xds::kClusterTypeUrl);

xds::ResourceBytes cluster(const std::string& name, const std::string& service = "") {
  Cluster message;
  message.set_name(name);
  message.mutable_eds_cluster_config()->set_service_name(service);
  return {.type_url = kCds, .name = name, .bytes = message.SerializeAsString()};
}

std::unique_ptr<ControlPlane> started_plane() {
  auto plane = ControlPlane::start("127.0.0.1:0");
  INFO(plane.status().ToString());
  REQUIRE(plane.ok());
  return *std::move(plane);
}

}  // namespace

TEST_CASE("control_plane: answers, pushes and takes ACKs over a real stream", "[e2e][tools]") {
  const auto plane = started_plane();
  plane->set_resources({cluster("a"), cluster("b")});
  RawClient client(plane->address());
  client.ask({"a"});
  const auto first = received(client);
  CHECK(first.type_url() == kCds);
  CHECK(names_in(first) == Names{"a"});

  client.ask({"a"}, first.version_info(), first.nonce());
  REQUIRE(plane->wait_for(
      [&](const DiscoveryRecord& record) {
        const auto* type = newest(record, kCds);
        return type != nullptr && type->acked_nonce == first.nonce();
      },
      test::kPatience));

  plane->update({cluster("a", "changed")});
  const auto second = received(client);
  CHECK(second.version_info() != first.version_info());
  CHECK(second.nonce() != first.nonce());

  client.ask({"a", "b"}, second.version_info(), second.nonce());
  CHECK(names_in(received(client)) == Names{"a", "b"});
  plane->remove(kCds, "a");
  CHECK(names_in(received(client)) == Names{"b"});
}

TEST_CASE("control_plane: a NACK can be read", "[e2e][tools]") {
  const auto plane = started_plane();
  plane->set_resources({cluster("a")});
  RawClient client(plane->address());
  client.ask({"a"});
  DiscoveryRequest nack;
  nack.set_type_url(kCds);
  nack.set_response_nonce(received(client).nonce());
  nack.add_resource_names("a");
  nack.mutable_error_detail()->set_code(grpc::StatusCode::INVALID_ARGUMENT);
  nack.mutable_error_detail()->set_message("a: eds_cluster_config: wrong");
  client.send(nack);
  REQUIRE(plane->wait_for([](const DiscoveryRecord& record) { return !record.nacks.empty(); },
                          test::kPatience));
  CHECK(plane->record().nacks[0].detail == "a: eds_cluster_config: wrong");
}

TEST_CASE("control_plane: what is unsubscribed is pushed no more", "[e2e][tools]") {
  const auto plane = started_plane();
  plane->set_resources({cluster("a"), cluster("b")});
  RawClient client(plane->address());
  client.ask({"a", "b"});
  const auto first = received(client);
  client.ask({"b"}, first.version_info(), first.nonce());
  REQUIRE(plane->wait_for(
      [](const DiscoveryRecord& record) {
        const auto* type = newest(record, kCds);
        return type != nullptr && type->names == Names{"b"};
      },
      test::kPatience));
  plane->update({cluster("a", "changed")});
  plane->update({cluster("b", "changed")});
  const auto second = received(client);
  CHECK(names_in(second) == Names{"b"});
  CHECK(newest(plane->record(), kCds)->responses == 2);
}

TEST_CASE("control_plane: after a stop it serves again on the same port", "[e2e][tools]") {
  const auto plane = started_plane();
  const std::string address = plane->address();
  plane->set_resources({cluster("a")});
  std::string version;
  {
    RawClient client(address);
    client.ask({"a"});
    version = received(client).version_info();
    plane->stop();
    CHECK_FALSE(client.receive().has_value());
    CHECK_FALSE(client.end().ok());
  }
  CHECK(plane->record().open_streams() == 0);

  REQUIRE(plane->start_again().ok());
  CHECK(plane->address() == address);
  RawClient client(address);
  client.ask({"a"}, version);
  CHECK(names_in(received(client)) == Names{"a"});
  CHECK(newest(plane->record(), kCds)->initial_version == version);
  CHECK(plane->record().streams_opened == 2);
}

TEST_CASE("control_plane: a stream that the client ends is gone", "[e2e][tools]") {
  const auto plane = started_plane();
  RawClient client(plane->address());
  client.half_close();
  CHECK_FALSE(client.receive().has_value());
  CHECK(client.end().ok());
  CHECK(plane->wait_for(
      [](const DiscoveryRecord& record) {
        return record.streams_opened == 1 && record.open_streams() == 0;
      },
      test::kPatience));
}

TEST_CASE("control_plane: another method is refused", "[e2e][tools]") {
  const auto plane = started_plane();
  RawClient client(plane->address(), "/no.such.Service/Method");
  CHECK_FALSE(client.receive().has_value());
  CHECK(client.end().error_code() == grpc::StatusCode::UNIMPLEMENTED);
}

TEST_CASE("control_plane: an address in use, or none, is an error that names it", "[e2e][tools]") {
  const auto plane = started_plane();
  const auto second = ControlPlane::start(plane->address());
  CHECK(second.status().code() == absl::StatusCode::kUnavailable);
  CHECK(std::string(second.status().message()).find(plane->address()) != std::string::npos);
  for (const char* wrong : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"}) {
    INFO(wrong);
    CHECK(ControlPlane::start(wrong).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace signalbox::tools
