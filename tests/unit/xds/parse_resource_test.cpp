// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/parse_resource.hpp"

#include <atomic>

#include <catch2/catch.hpp>
#include <google/protobuf/any.pb.h>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/support/printed.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/limits.hpp"
#include "xds/parse/response_parser.hpp"

namespace signalbox::xds {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;
using envoy::service::discovery::v3::DiscoveryResponse;
using Wrapper = envoy::service::discovery::v3::Resource;

const std::string kCluster(kClusterTypeUrl);
const std::string kWrapper = "type.googleapis.com/envoy.service.discovery.v3.Resource";

// A valid cluster of this name, as the inside of an Any.
std::string good(const std::string& name) {
  return "[" + kCluster + "] { name: \"" + name +
         "\" type: EDS eds_cluster_config { eds_config { self {} } } } ";
}

std::string bad(const std::string& name) {
  return "[" + kCluster + "] { name: \"" + name + "\" } ";
}

std::string undecodable_cluster() {
  return "type_url: \"" + kCluster + "\" value: \"\\377\"";
}

std::string response(const std::vector<std::string>& resources) {
  std::string text = "version_info: \"7\" nonce: \"n3\" type_url: \"" + kCluster + "\" ";
  for (const std::string& resource : resources)
    text += "resources { " + resource + " } ";
  return serialise<DiscoveryResponse>(text);
}

DecodedResponse decoded(const std::vector<std::string>& resources) {
  auto result = decode_response(response(resources));
  REQUIRE(result.ok());
  return *std::move(result);
}

const std::string kTypeError =
    "type: must be EDS or LOGICAL_DNS, or cluster_type be set; found none";

}  // namespace

TEST_CASE("parse_resource: each type has its parser", "[xds][parse]") {
  struct Row {
    ResourceType type;
    std::string what;
  };

  const auto row = GENERATE(values<Row>({
      {ResourceType::kListener, "LDS resource \"\": name: "},
      {ResourceType::kRouteConfig, "RDS resource \"\": name: "},
      {ResourceType::kCluster, "CDS resource \"\": name: "},
      {ResourceType::kEndpoints, "EDS resource \"\": cluster_name: "},
  }));
  CHECK(error_of(parse_resource(row.type, type_url_of(row.type), "")).rfind(row.what, 0) == 0);
}

TEST_CASE("parse_resource: a Resource is unwrapped", "[xds][parse]") {
  const std::string bytes = serialise<Wrapper>("name: \"outer\" resource { " + good("a") + "}");
  const auto received = parse_resource(ResourceType::kCluster, kWrapper, bytes);
  CHECK(received.name == "a");
  CHECK(value_of<Cluster>(received).name == ClusterName{"a"});
}

TEST_CASE("parse_resource: a resource keeps the bytes that it came as, without its wrapper",
          "[xds][parse][A40]") {
  ClusterProto proto;
  REQUIRE(::google::protobuf::TextFormat::ParseFromString(
      "name: \"a\" type: EDS eds_cluster_config { eds_config { self {} } }", &proto));
  Wrapper wrapper;
  wrapper.mutable_resource()->set_type_url(kCluster);
  wrapper.mutable_resource()->set_value(proto.SerializeAsString());
  const auto received =
      parse_resource(ResourceType::kCluster, kWrapper, wrapper.SerializeAsString());
  REQUIRE(received.bytes != nullptr);
  CHECK(*received.bytes == proto.SerializeAsString());
  CHECK(parse_resource(ResourceType::kCluster, kCluster, "\xff").bytes == nullptr);
}

TEST_CASE("parse_resource: a Resource lends its name to what has none", "[xds][parse]") {
  const std::string bytes =
      serialise<Wrapper>("name: \"outer\" resource { " + undecodable_cluster() + "}");
  const auto received = parse_resource(ResourceType::kCluster, kWrapper, bytes);
  CHECK(received.name == "outer");
  CHECK(error_of(received) ==
        "Resource \"outer\": CDS resource must be a Cluster, found 1 bytes that are not");
  // An outer Resource lends its name to an inner Resource without a name, too.
  const std::string twice = serialise<Wrapper>("name: \"outer\" resource { [" + kWrapper +
                                               "] { resource { " + undecodable_cluster() + "} } }");
  CHECK(parse_resource(ResourceType::kCluster, kWrapper, twice).name == "outer");
  // A resource with a name keeps it, even if the resource is invalid.
  const std::string named = serialise<Wrapper>(
      "name: \"outer\" resource { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: "
      "\"inner\" } }");
  const auto inner = parse_resource(ResourceType::kCluster, kWrapper, named);
  CHECK(inner.name == "inner");
  CHECK(error_of(inner).starts_with("CDS resource \"inner\": "));
}

TEST_CASE("parse_resource: fields in a group, and numbers in place of texts, are unknown fields",
          "[xds][parse]") {
  // Field 15 as a group with this content, and then fields 1 to 5 as numbers.
  const auto unknown = [](const std::string& content) {
    return "\x7b" + content + "\x7c" + "\x08\x01\x10\x01\x18\x01\x20\x01\x28\x01";
  };
  const auto result =
      decode_response(response({good("a")}) + unknown("\x0a\x01x\x22\x01x\x2a\x01x"));
  REQUIRE(result.ok());
  CHECK(result->received.version == "7");
  CHECK(result->nonce == "n3");

  ::google::protobuf::Any any;
  any.set_type_url(kCluster);
  any.set_value("v");
  const std::string bytes = any.SerializeAsString() + unknown("\x0a\x01x\x12\x01x");
  REQUIRE(read_any(bytes).has_value());
  CHECK(read_any(bytes)->type_url == kCluster);
  CHECK(read_any(bytes)->value == "v");

  const std::string wrapper =
      serialise<Wrapper>("name: \"outer\" resource { " + undecodable_cluster() + "}") +
      unknown("\x1a\x01x");
  CHECK(parse_resource(ResourceType::kCluster, kWrapper, wrapper).name == "outer");

  // Of a resource that is not decoded, only the name is read.
  ParseOptions options;
  options.limits.max_decoded_memory = 1;
  const std::string cluster = unknown("\x0a\x01x") + "\x0a\x01m";
  CHECK(parse_resource(ResourceType::kCluster, kCluster, cluster, options).name == "m");
  const auto refused = parse_resource(ResourceType::kCluster, kWrapper, wrapper, options);
  CHECK(refused.name == "outer");
  CHECK(error_of(refused).starts_with("CDS resource \"outer\": the resources of a response"));
}

TEST_CASE("parse_resource: a Resource is not wrapped without end", "[xds][parse][limits]") {
  const auto wrapped = [](std::size_t times) {
    std::string any = good("a");
    for (std::size_t i = 0; i < times; ++i) {
      any = "[" + kWrapper + "] { name: \"outer\" resource { " + any + " } }";
    }
    return serialise<Wrapper>("resource { " + any + " }");
  };
  CHECK(
      parse_resource(ResourceType::kCluster, kWrapper, wrapped(kMaxAnyNesting - 1)).resource.ok());
  const auto received = parse_resource(ResourceType::kCluster, kWrapper, wrapped(kMaxAnyNesting));
  CHECK(received.name == "outer");
  CHECK(error_of(received) ==
        "CDS resource \"outer\": must not be wrapped more than 32 times (limit max_any_nesting)");
  CHECK(error_of(parse_resource(ResourceType::kCluster, kWrapper, "\xff")) ==
        "CDS resource must be a Resource, found 1 bytes that are not");
  // A Resource with a name that is not UTF-8, and one with bytes that are no Any.
  CHECK(error_of(parse_resource(ResourceType::kCluster, kWrapper, "\x1a\x01\xff")) ==
        "CDS resource must be a Resource, found 3 bytes that are not: name must be UTF-8, found "
        "\"\\377\"");
  CHECK(error_of(parse_resource(ResourceType::kCluster, kWrapper, "\x12\x01\xff")) ==
        "CDS resource must be a Resource, found 3 bytes that are not");
  CHECK_FALSE(read_any("\x0a\x01\xff").has_value());
}

TEST_CASE("parse_resource: another type than was asked for is an error", "[xds][parse]") {
  const std::string listener(kListenerTypeUrl);
  CHECK(error_of(parse_resource(ResourceType::kCluster, listener, "")) ==
        "CDS resource \"\": type_url: must be " + kCluster + ", found \"" + listener + "\"");
}

TEST_CASE("parse_resource: the API's second version is another type", "[xds][parse][A30]") {
  CHECK(decode_response(
            serialise<DiscoveryResponse>("type_url: \"type.googleapis.com/envoy.api.v2.Cluster\""))
            .status()
            .message() ==
        "a DiscoveryResponse must be of a type that was asked for, found type_url "
        "\"type.googleapis.com/envoy.api.v2.Cluster\"");
  CHECK_FALSE(
      parse_resource(ResourceType::kCluster, "type.googleapis.com/envoy.api.v2.Cluster", "\n\1c")
          .resource.ok());
}

TEST_CASE("decode_response: a good response is to be ACKed", "[xds][parse][A27]") {
  const DecodedResponse result = decoded({good("a"), good("b")});
  CHECK(result.nonce == "n3");
  CHECK(result.nack_detail.empty());
  CHECK(result.received.type == ResourceType::kCluster);
  CHECK(result.received.version == "7");
  REQUIRE(result.received.resources.size() == 2);
  CHECK(value_of<Cluster>(result.received.resources[0]).name == ClusterName{"a"});
  CHECK(value_of<Cluster>(result.received.resources[1]).name == ClusterName{"b"});
  CHECK(result.received.unnamed_errors.empty());
}

TEST_CASE("decode_response: an empty response is good", "[xds][parse]") {
  CHECK(decoded({}).nack_detail.empty());
  CHECK(decoded({}).received.resources.empty());
}

TEST_CASE("decode_response: the good ones of a bad response are used", "[xds][parse][A46]") {
  const DecodedResponse result =
      decoded({good("a"), bad("b"), undecodable_cluster(), good("c"), bad("d")});
  REQUIRE(result.received.resources.size() == 4);
  CHECK(result.received.resources[0].resource.ok());
  CHECK(error_of(result.received.resources[1]) == "CDS resource \"b\": " + kTypeError);
  CHECK(result.received.resources[2].resource.ok());
  CHECK(result.received.resources[3].name == "d");
  CHECK(result.received.unnamed_errors ==
        std::vector<std::string>{
            "resources[2]: CDS resource must be a Cluster, found 1 bytes that are not"});
  CHECK(result.nack_detail == "CDS resource \"b\": " + kTypeError + "; CDS resource \"d\": " +
                                  kTypeError + "; " + result.received.unnamed_errors[0]);
}

TEST_CASE("decode_response: a resource of another type spoils no other", "[xds][parse][A46]") {
  const DecodedResponse result =
      decoded({"type_url: \"" + std::string(kListenerTypeUrl) + "\"", good("a")});
  CHECK(result.received.resources.size() == 1);
  CHECK(result.received.resources[0].resource.ok());
  CHECK(result.nack_detail.find("resources[0]: CDS resource \"\": type_url: must be") == 0);
}

TEST_CASE("decode_response: a name that occurs twice is an error for that name",
          "[xds][parse][A46]") {
  const DecodedResponse result = decoded({good("a"), good("b"), good("a"), good("a")});
  REQUIRE(result.received.resources.size() == 2);
  CHECK(result.received.resources[0].name == "a");
  CHECK(error_of(result.received.resources[0]) ==
        "CDS resource \"a\": must occur once in a response, found more than once");
  CHECK(result.received.resources[1].resource.ok());
  CHECK(result.nack_detail ==
        "CDS resource \"a\": must occur once in a response, found more than once");
}

TEST_CASE("decode_response: a NACK tells the first errors, and how many there are",
          "[xds][parse][limits]") {
  std::vector<std::string> resources;
  for (std::size_t i = 0; i < 5000; ++i)
    resources.push_back(bad("cluster" + std::to_string(i)));
  resources.push_back(undecodable_cluster());
  const DecodedResponse result = decoded(resources);
  CHECK(result.received.resources.size() == 5000);
  CHECK(result.nack_detail.find("CDS resource \"cluster15\"") != std::string::npos);
  CHECK(result.nack_detail.find("CDS resource \"cluster16\"") == std::string::npos);
  CHECK(result.nack_detail.ends_with("; and 4985 more invalid resources"));
  // The NACK lists few resources. Watchers of many others still get the error of their resource.
  CHECK(result.received.resources[2000].resource.status().message() ==
        "CDS resource \"cluster2000\": " + kTypeError);
  CHECK(result.received.resources[4999].resource.status().message() ==
        "must be valid, found an error that is not listed: the response has too many of them");
}

TEST_CASE("decode_response: names that occur twice have short errors, too, if they are many",
          "[xds][parse][limits]") {
  constexpr std::size_t kNames = 4'000;
  std::vector<std::string> resources;
  for (std::size_t i = 0; i < 2 * kNames; ++i)
    resources.push_back(good("cluster" + std::to_string(i % kNames)));
  const DecodedResponse result = decoded(resources);
  REQUIRE(result.received.resources.size() == kNames);
  CHECK(error_of(result.received.resources[2'000]) ==
        "CDS resource \"cluster2000\": must occur once in a response, found more than once");
  CHECK(result.received.resources[kNames - 1].resource.status().message() ==
        "must be valid, found an error that is not listed: the response has too many of them");
}

TEST_CASE("decode_response: a NACK is no longer than a request may be", "[xds][parse][limits]") {
  std::vector<std::string> resources;
  for (std::size_t i = 0; i < 20; ++i) {
    std::string long_name(1000, 'n');
    std::string domains;
    for (std::size_t j = 0; j < 40; ++j)
      domains += "drop_overloads { category: \"" + std::string(2000, 'c') + "\" } ";
    resources.push_back("[" + std::string(kClusterLoadAssignmentTypeUrl) + "] { cluster_name: \"" +
                        long_name + std::to_string(i) + "\" policy { " + domains + " } } ");
  }
  std::string text = "type_url: \"" + std::string(kClusterLoadAssignmentTypeUrl) + "\" ";
  for (const std::string& resource : resources)
    text += "resources { " + resource + " } ";
  const auto result = decode_response(serialise<DiscoveryResponse>(text));
  REQUIRE(result.ok());
  CHECK(result->received.resources.size() == 20);
  CHECK(result->nack_detail.size() < kMaxNackDetailLength + 100);
  CHECK(result->nack_detail.ends_with(" more invalid resources"));
}

TEST_CASE("decode_response: errors of resources without a name are few, the others are counted",
          "[xds][parse][limits]") {
  const DecodedResponse result = decoded(std::vector<std::string>(100, undecodable_cluster()));
  CHECK(result.received.unnamed_errors.size() == kMaxKeptErrors);
  CHECK(result.received.more_unnamed == 100 - kMaxKeptErrors);
  CHECK(result.received.rejected[static_cast<std::size_t>(RejectionReason::kParse)] == 100);
  CHECK(result.nack_detail.ends_with("; and 84 more invalid resources"));
}

TEST_CASE("decode_response: a response that is not whole is none, wherever it breaks",
          "[xds][parse]") {
  const std::string whole = response({good("a"), good("b")});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    DiscoveryResponse proto;
    const std::string part = whole.substr(0, size);
    INFO(size);
    // A part that protobuf can parse is a response: without its type_url, one of an unknown type.
    const auto result = decode_response(part);
    CHECK(absl::IsInvalidArgument(result.status()) == !proto.ParseFromString(part));
  }
}

TEST_CASE("decode_response: a long one is decoded in parts", "[xds][parse]") {
  std::vector<std::string> resources;
  for (std::size_t i = 0; i < 3000; ++i)
    resources.push_back(good("cluster" + std::to_string(i)));
  const auto known = std::make_shared<KnownResources>();
  const Decoding decoding = decode_in_parts(response(resources), {}, known);
  std::size_t parts = 1;
  auto result = decoding();
  for (; !result; result = decoding())
    ++parts;
  CHECK(parts > 3);
  CHECK(parts < 100);
  REQUIRE(result->ok());
  CHECK((*result)->nack_detail.empty());
  CHECK((*result)->received.resources.size() == 3000);
  CHECK((*result)->nonce == "n3");
}

TEST_CASE("decode_response: of what is abandoned nothing is read further", "[xds][parse]") {
  const auto abandoned = std::make_shared<std::atomic<bool>>(false);
  ParseOptions options;
  options.abandoned = abandoned;
  std::vector<std::string> resources;
  // More fields than the parser reads between two looks at the flag.
  for (std::size_t i = 0; i < 5000; ++i)
    resources.push_back(good("cluster" + std::to_string(i)));
  const Decoding decoding = decode_in_parts(response(resources), options, nullptr);
  CHECK_FALSE(decoding());
  abandoned->store(true);
  for (int i = 0; i < 100; ++i)
    CHECK_FALSE(decoding());
  CHECK(absl::IsCancelled(decode_response(response(resources), options).status()));
}

TEST_CASE("decode_response: a server's errors are read, and are nothing to refuse",
          "[xds][parse][A88]") {
  const auto result = decode_response(serialise<DiscoveryResponse>(
      "type_url: \"" + kCluster +
      "\" "
      "resource_errors { resource_name { name: \"a\" } "
      "                  error_detail { code: 5 message: \"gone\" } } "
      "resource_errors { resource_name { name: \"b\" } error_detail { code: 99 } } "
      "resource_errors { resource_name { name: \"well\" } error_detail { code: 0 } } "
      "resource_errors { error_detail { code: 5 message: \"of nothing\" } }"));
  REQUIRE(result.ok());
  CHECK(result->nack_detail.empty());
  const auto& errors = result->received.resource_errors;
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].name == "a");
  CHECK(errors[0].status == absl::NotFoundError("gone"));
  CHECK(errors[1].name == "b");
  CHECK(errors[1].status.code() == absl::StatusCode::kUnknown);
}

TEST_CASE("decode_response: of a server's error no more is kept than people read",
          "[xds][parse][A88]") {
  const auto result = decode_response(serialise<DiscoveryResponse>(
      "type_url: \"" + kCluster +
      "\" resource_errors { resource_name { name: \"a\" } error_detail { code: 5 message: \"" +
      std::string(1 << 20, 'x') + "\" } }"));
  REQUIRE(result.ok());
  CHECK(result->received.resource_errors.at(0).status.message().size() == kMaxResourceErrorLength);
}

TEST_CASE("decode_response: a server's error that would take much memory is ignored",
          "[xds][parse][limits][A88]") {
  DiscoveryResponse response;
  response.set_type_url(kCluster);
  for (const char* name : {"heavy", "light"}) {
    auto* error = response.add_resource_errors();
    error->mutable_resource_name()->set_name(name);
    error->mutable_error_detail()->set_code(5);
  }
  for (int i = 0; i < 100'000; ++i)
    response.mutable_resource_errors(0)->mutable_error_detail()->add_details();
  const auto result = decode_response(response.SerializeAsString());
  REQUIRE(result.ok());
  REQUIRE(result->received.resource_errors.size() == 1);
  CHECK(result->received.resource_errors[0].name == "light");
}

TEST_CASE("decode_response: what cannot be answered is an error", "[xds][parse]") {
  CHECK(decode_response("\xff").status().message() ==
        "the server's message must be a DiscoveryResponse, found 1 bytes that are not");
  CHECK(decode_response(serialise<DiscoveryResponse>("type_url: \"x/y.Z\"")).status().message() ==
        "a DiscoveryResponse must be of a type that was asked for, found type_url \"x/y.Z\"");
}

}  // namespace signalbox::xds
