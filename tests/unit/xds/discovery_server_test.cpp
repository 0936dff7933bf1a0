// SPDX-License-Identifier: Apache-2.0
#include "xds/discovery_server.hpp"

#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/discovery_record.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds::discovery_server_test {
namespace {

using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;

const std::string kCds(kClusterTypeUrl);
const std::string kEds(kClusterLoadAssignmentTypeUrl);
const std::string kLds(kListenerTypeUrl);

ResourceBytes resource(const std::string& type_url,
                       const std::string& name,
                       const std::string& bytes = "1") {
  return {.type_url = type_url, .name = name, .bytes = bytes};
}

DiscoveryRequest request(const std::string& type_url, const std::set<std::string>& names) {
  DiscoveryRequest request;
  request.set_type_url(type_url);
  for (const auto& name : names)
    request.add_resource_names(name);
  return request;
}

DiscoveryResponse only(const OutgoingResponses& responses) {
  REQUIRE(responses.size() == 1);
  DiscoveryResponse response;
  REQUIRE(response.ParseFromString(responses[0].bytes));
  return response;
}

// A client on one stream. ack() sends the request by which a real client accepts a response.
struct Client {
  DiscoveryServer& server;
  StreamId stream = server.open_stream();

  OutgoingResponses send(const DiscoveryRequest& message) {
    auto responses = server.receive(stream, message.SerializeAsString());
    REQUIRE(responses.ok());
    return *responses;
  }

  OutgoingResponses ack(const DiscoveryResponse& response, const std::set<std::string>& names) {
    auto message = request(response.type_url(), names);
    message.set_version_info(response.version_info());
    message.set_response_nonce(response.nonce());
    return send(message);
  }
};

}  // namespace

TEST_CASE("discovery_server: a response holds what is wanted and there", "[xds][D1]") {
  DiscoveryServer server;
  server.replace({resource(kEds, "a"), resource(kEds, "b"), resource(kCds, "a")});
  Client client{server};
  const auto response = only(client.send(request(kEds, {"a", "missing"})));
  CHECK(response.type_url() == kEds);
  REQUIRE(response.resources_size() == 1);
  CHECK(response.resources(0).type_url() == kEds);
  CHECK(response.resources(0).value() == "1");
  CHECK_FALSE(response.nonce().empty());
  CHECK_FALSE(response.version_info().empty());
}

TEST_CASE("discovery_server: an ACK is recorded and not answered", "[xds]") {
  DiscoveryServer server;
  server.replace({resource(kCds, "a")});
  Client client{server};
  const auto response = only(client.send(request(kCds, {"a"})));
  CHECK(client.ack(response, {"a"}).empty());
  const TypeRecord* record = newest(server.record(), kCds);
  REQUIRE(record != nullptr);
  CHECK(record->acked_nonce == response.nonce());
  CHECK(record->acked_version == response.version_info());
  CHECK(server.record().nacks.empty());
}

TEST_CASE("discovery_server: a NACK is recorded with its detail", "[xds]") {
  DiscoveryServer server;
  server.replace({resource(kCds, "a")});
  Client client{server};
  const auto response = only(client.send(request(kCds, {"a"})));
  auto nack = request(kCds, {"a"});
  nack.set_response_nonce(response.nonce());
  nack.mutable_error_detail()->set_code(3);
  nack.mutable_error_detail()->set_message("type: unknown");
  CHECK(client.send(nack).empty());
  REQUIRE(server.record().nacks.size() == 1);
  CHECK(server.record().nacks[0].type_url == kCds);
  CHECK(server.record().nacks[0].nonce == response.nonce());
  CHECK(server.record().nacks[0].code == 3);
  CHECK(server.record().nacks[0].detail == "type: unknown");
  CHECK(newest(server.record(), kCds)->acked_nonce.empty());
}

TEST_CASE("discovery_server: a request with an old nonce changes nothing", "[xds][D2]") {
  DiscoveryServer server;
  server.replace({resource(kEds, "a"), resource(kEds, "b")});
  Client client{server};
  const auto first = only(client.send(request(kEds, {"a"})));
  const auto second = only(server.update({resource(kEds, "a", "2")}));
  CHECK(client.ack(first, {"a", "b"}).empty());
  CHECK(server.record().stale_requests == 1);
  CHECK(newest(server.record(), kEds)->names == std::set<std::string>{"a"});
  CHECK(client.ack(second, {"a", "b"}).size() == 1);
}

TEST_CASE("discovery_server: a change goes to those who want it, with a new version", "[xds][D3]") {
  DiscoveryServer server;
  server.replace({resource(kEds, "a"), resource(kEds, "b"), resource(kCds, "a")});
  Client both{server};
  Client other{server};
  Client third{server};
  const auto before = only(both.send(request(kEds, {"a", "b"})));
  only(other.send(request(kEds, {"b"})));
  only(third.send(request(kCds, {"a"})));

  SECTION("it changed") {
    const auto responses = server.update({resource(kEds, "a", "2")});
    const auto after = only(responses);
    CHECK(responses[0].stream == both.stream);
    CHECK(after.version_info() != before.version_info());
    CHECK(after.nonce() != before.nonce());
    CHECK(after.resources_size() == 2);
  }
  SECTION("it is the same as before") {
    CHECK(server.update({resource(kEds, "a")}).empty());
  }
}

TEST_CASE("discovery_server: what is removed is missing from the next response", "[xds][D1]") {
  DiscoveryServer server;
  server.replace({resource(kCds, "a"), resource(kCds, "b")});
  Client client{server};
  only(client.send(request(kCds, {"a", "b"})));
  SECTION("by name") {
    CHECK(only(server.remove(kCds, "a")).resources_size() == 1);
  }
  SECTION("by the new whole") {
    CHECK(only(server.replace({resource(kCds, "b")})).resources_size() == 1);
  }
  SECTION("what is not there cannot be removed") {
    CHECK(server.remove(kCds, "c").empty());
  }
}

TEST_CASE("discovery_server: unsubscribing is not answered, and ends the pushing", "[xds]") {
  DiscoveryServer server;
  server.replace({resource(kEds, "a"), resource(kEds, "b")});
  Client client{server};
  const auto response = only(client.send(request(kEds, {"a", "b"})));
  CHECK(client.ack(response, {"b"}).empty());
  CHECK(server.update({resource(kEds, "a", "2")}).empty());
  CHECK(client.ack(response, {}).empty());
  CHECK(server.update({resource(kEds, "b", "2")}).empty());
}

TEST_CASE("discovery_server: endpoints that do not exist are not answered, clusters are", "[xds]") {
  DiscoveryServer server;
  Client client{server};
  CHECK(client.send(request(kEds, {"a"})).empty());
  CHECK(only(client.send(request(kCds, {"a"}))).resources_size() == 0);
  CHECK(server.update({resource(kEds, "a")}).size() == 1);
}

TEST_CASE("discovery_server: says by name what it does not have, where it is told how",
          "[xds][A88]") {
  DiscoveryServer server("not here");
  server.replace({resource(kEds, "a"), resource(kCds, "a")});
  Client client{server};
  const auto response = only(client.send(request(kEds, {"a", "b"})));
  CHECK(response.resources_size() == 1);
  REQUIRE(response.resource_errors_size() == 1);
  CHECK(response.resource_errors(0).resource_name().name() == "b");
  CHECK(response.resource_errors(0).error_detail().code() == 5);
  CHECK(response.resource_errors(0).error_detail().message() ==
        "not here; its EDS resources are: \"a\"");
  CHECK(only(client.send(request(std::string(kRouteConfigurationTypeUrl), {"r"})))
            .resource_errors(0)
            .error_detail()
            .message() == "not here, which has no RDS resource");

  CHECK(client.ack(response, {"b"}).empty());
  CHECK(only(server.update({resource(kEds, "b")})).resource_errors_size() == 0);
  CHECK(only(server.remove(kEds, "b")).resource_errors_size() == 1);
  CHECK(only(client.send(request(kCds, {}))).resource_errors_size() == 0);
  CHECK(only(Client{server}.send(request(kCds, {"*"}))).resource_errors_size() == 0);
}

TEST_CASE("discovery_server: forgets the oldest streams that were closed, and no open one",
          "[xds]") {
  DiscoveryServer server;
  const Client client{server};
  for (int i = 0; i < 1'000; ++i)
    server.close_stream(server.open_stream());
  const DiscoveryRecord& record = server.record();
  CHECK(record.streams.size() < 100);
  CHECK(record.open_streams() == 1);
  CHECK(record.streams.front().id == client.stream);
  CHECK(record.streams.back().id > 1'000);
  CHECK(record.streams_opened == 1'001);
}

TEST_CASE("discovery_server: no names at first mean all clusters", "[xds]") {
  DiscoveryServer server;
  server.replace({resource(kCds, "a"), resource(kCds, "b")});
  Client client{server};
  CHECK(only(client.send(request(kCds, {}))).resources_size() == 2);
  CHECK(only(server.update({resource(kCds, "c")})).resources_size() == 3);
}

TEST_CASE("discovery_server: pushes clusters before endpoints before listeners", "[xds]") {
  DiscoveryServer server;
  Client client{server};
  client.send(request(kLds, {"l"}));
  client.send(request(kEds, {"e"}));
  client.send(request(kCds, {"c"}));
  const auto responses =
      server.replace({resource(kLds, "l"), resource(kEds, "e"), resource(kCds, "c")});
  std::vector<std::string> order;
  for (const auto& response : responses)
    order.push_back(only({response}).type_url());
  CHECK(order == std::vector<std::string>{kCds, kEds, kLds});
}

TEST_CASE("discovery_server: a new stream says what version the client has kept", "[xds]") {
  DiscoveryServer server;
  server.replace({resource(kCds, "a")});
  Client client{server};
  const auto response = only(client.send(request(kCds, {"a"})));
  server.close_stream(client.stream);
  CHECK(server.record().open_streams() == 0);
  CHECK(newest(server.record(), kCds) == nullptr);

  Client again{server};
  auto first = request(kCds, {"a"});
  first.set_version_info(response.version_info());
  first.mutable_node()->set_id("node-1");
  CHECK(only(again.send(first)).resources_size() == 1);
  CHECK(newest(server.record(), kCds)->initial_version == response.version_info());
  CHECK(server.record().streams.back().node_id == "node-1");
  CHECK(server.record().streams_opened == 2);
}

TEST_CASE("discovery_server: what is no request ends the stream", "[xds]") {
  DiscoveryServer server;
  const StreamId stream = server.open_stream();
  CHECK(server.receive(stream, "\xff\xff").status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(server.receive(stream, "").status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace signalbox::xds::discovery_server_test
