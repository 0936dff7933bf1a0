// SPDX-License-Identifier: Apache-2.0
//
// The cost of a response or a resource file, counted by this program's operator new: peak memory
// and allocations. No clock is read: the number of allocations stands for the time.
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <google/protobuf/arena.h>

#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/counted_memory.hpp"
#include "tests/support/decode_response.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/limits.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::route::v3::RouteConfiguration;
using envoy::service::discovery::v3::DiscoveryResponse;

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;

struct Cost {
  std::size_t memory = 0;  ///< The peak, in bytes, above what was in use before.
  std::size_t allocations = 0;
};

template <typename Work>
Cost cost_of(Work work) {
  const testing::CountedMemory counted;
  work();
  return {counted.most(), counted.allocations()};
}

std::string varint(std::size_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U)
    bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

std::string field(int number, const std::string& content) {
  return static_cast<char>(number * 8 + 2) + varint(content.size()) + content;
}

std::string repeated(const std::string& text, std::size_t bytes) {
  std::string all;
  all.reserve(bytes + text.size());
  while (all.size() < bytes)
    all += text;
  return all;
}

std::string response_of(absl::string_view type_url, const std::string& rest) {
  return field(4, std::string(type_url)) + field(5, "nonce") + rest;
}

std::string resource_of(absl::string_view type_url, const std::string& bytes) {
  return field(2, field(1, std::string(type_url)) + field(2, bytes));
}

// A response with one resource: its name, and then `entry` repeated to `bytes` bytes.
std::string flood(absl::string_view type_url, const std::string& entry, std::size_t bytes) {
  return response_of(type_url, resource_of(type_url, field(1, "name") + repeated(entry, bytes)));
}

struct Flood {
  std::string what;
  std::string bytes;
};

}  // namespace

TEST_CASE("response memory: empty entries cost next to nothing, wherever they stand",
          "[xds][parse][limits][memory]") {
  const std::size_t size = 16 * kMegabyte;
  const std::string empty_in_2 = field(2, "");
  const std::string kEds(kClusterLoadAssignmentTypeUrl);
  const std::string kRds(kRouteConfigurationTypeUrl);
  const std::string kCds(kClusterTypeUrl);
  const std::string wrapper = "type.googleapis.com/envoy.service.discovery.v3.Resource";
  const auto made = GENERATE_COPY(values<std::pair<std::string, int>>({
      {"resources", 0},
      {"resources that name their type", 1},
      {"errors of resources", 2},
      {"virtual hosts", 3},
      {"routes", 4},
      {"headers of a route", 5},
      {"localities", 6},
      {"endpoints", 7},
      {"health checks", 8},
      {"metadata", 9},
      {"unknown fields", 10},
      {"wrapped resources", 11},
      {"clusters beyond max_clusters", 12},
      {"health checks of many clusters", 13},
  }));
  const std::string bytes = [&]() -> std::string {
    switch (made.second) {
      case 0:
        return response_of(kCds, repeated(empty_in_2, size));
      case 1:
        return response_of(kCds, repeated(resource_of(kCds, ""), size));
      case 2:
        return response_of(kCds, repeated(field(7, field(1, field(1, "n")) + field(2, "")), size));
      case 3:
        return flood(kRds, empty_in_2, size);
      case 4:
        return flood(kRds, field(2, repeated(field(3, ""), 1000)), size);
      case 5:
        return flood(kRds, field(2, field(3, field(1, repeated(field(6, ""), 100'000)))), size);
      case 6:
        return flood(kEds, empty_in_2, size);
      case 7:
        return flood(kEds, field(2, repeated(empty_in_2, 100'000)), size);
      case 8:
        return flood(kCds, field(8, ""), size);
      case 9:
        // LbEndpoint.metadata.filter_metadata: a map of Structs.
        return flood(
            kEds, field(2, field(2, field(3, repeated(field(1, field(1, "kk")), 10'000)))), size);
      case 10:
        return flood(kCds, field(15, "") + "\x78\x01", size);
      case 11:
        return response_of(
            kCds,
            repeated(field(2, field(1, wrapper) + field(2, repeated("\x18\x01", 100))), size));
      case 12:
        return response_of(kCds, repeated(resource_of(kCds, field(1, "n")), size));
      default:
        return response_of(
            kCds, repeated(resource_of(kCds, repeated(field(8, ""), kMegabyte / 2)), size));
    }
  }();
  // The ratio of the default limits: a message of 64 MiB may take 256 MiB when decoded.
  ParseOptions options;
  options.limits.max_decoded_memory = 4 * bytes.size();
  const Cost cost = cost_of([&] {
    const auto decoded = decode_response(bytes, options);
    REQUIRE(decoded.ok());
    CHECK(decoded->nack_detail.size() < kMaxNackDetailLength + 100);
    CHECK(decoded->received.unnamed_errors.size() <= kMaxKeptErrors);
  });
  INFO(made.first << ": " << bytes.size() << " bytes, " << cost.memory << " of memory, "
                  << cost.allocations << " allocations");
  CHECK(cost.memory <= 5 * bytes.size());  // The response itself is not counted.
  CHECK(cost.allocations <= 3'000'000);
}

TEST_CASE("response memory: 64 MiB of empty resources are refused by max_resources",
          "[xds][parse][limits][memory]") {
  const std::string bytes =
      response_of(kClusterTypeUrl, repeated(field(2, ""), 64 * kMegabyte - 1000));
  const std::size_t entries = (bytes.size() - 70) / 2;
  const Cost cost = cost_of([&] {
    const auto decoded = decode_response(bytes);
    REQUIRE(decoded.ok());
    const ResourcesReceived& received = decoded->received;
    CHECK(received.resources.empty());
    CHECK(received.unnamed_errors.size() == kMaxKeptErrors);
    CHECK(received.more_unnamed > entries - 100);
    CHECK(received.rejected[static_cast<std::size_t>(RejectionReason::kLimit)] >
          entries - kMaxResources - 100);
    CHECK(decoded->nonce == "nonce");
  });
  CHECK(cost.memory < 32 * kMegabyte);
}

TEST_CASE("response memory: the weight is no less than what protobuf takes",
          "[xds][parse][limits][memory]") {
  const std::string endpoint = serialise<envoy::config::endpoint::v3::LbEndpoint>(
      "endpoint { address { socket_address { address: \"10.11.12.13\" port_value: 8080 } } } "
      "load_balancing_weight { value: 3 } metadata { filter_metadata { key: \"envoy.lb\" "
      "value { fields { key: \"hash_key\" value { string_value: \"some key\" } } } } }");
  const std::vector<Flood> floods = {
      {"empty localities", repeated(field(2, ""), kMegabyte)},
      {"empty endpoints", repeated(field(2, repeated(field(2, ""), 1000)), kMegabyte)},
      {"endpoints", repeated(field(2, repeated(field(2, endpoint), 10'000)), kMegabyte)},
      {"unknown numbers", repeated("\x78\x01", kMegabyte)},
      {"unknown texts", repeated(field(15, "text"), kMegabyte)},
      {"long unknown texts", repeated(field(15, std::string(100, 'x')), kMegabyte)},
      {"a name", field(1, std::string(kMegabyte, 'n'))},
  };
  for (const Flood& one : floods) {
    const Cost cost = cost_of([&] {
      ClusterLoadAssignment proto;
      REQUIRE(proto.ParseFromString(one.bytes));
    });
    const std::size_t weight =
        weigh(one.bytes, *ClusterLoadAssignment::descriptor(), std::size_t{1} << 40U);
    INFO(one.what << ": weight " << weight << ", memory " << cost.memory << ", "
                  << weight / one.bytes.size() << " a byte");
    CHECK(weight + 4096 >= cost.memory * 9 / 10);
    CHECK(weight <= 4 * cost.memory + 4096);
    CHECK(weight <= 256 * one.bytes.size());  // may_outweigh() relies on this bound.
    // weigh() stops at the first value that makes the estimate exceed the limit.
    if (one.what != "a name")
      CHECK(weigh(one.bytes, *ClusterLoadAssignment::descriptor(), 1000) < 2000);
  }
}

TEST_CASE("response memory: as much as the other limits allow is within the memory's",
          "[xds][parse][limits][memory]") {
  ClusterLoadAssignment endpoints;
  endpoints.set_cluster_name("e");
  auto* locality = endpoints.add_endpoints();
  locality->mutable_locality();
  locality->mutable_load_balancing_weight()->set_value(1);
  for (std::size_t i = 0; i < kMaxEndpointsPerCluster; ++i) {
    auto* address = locality->add_lb_endpoints()
                        ->mutable_endpoint()
                        ->mutable_address()
                        ->mutable_socket_address();
    address->set_address(absl::StrCat("10.", i >> 16U, ".", i >> 8U & 255U, ".", i & 255U));
    address->set_port_value(8080);
  }
  const std::string bytes = endpoints.SerializeAsString();
  const auto decoded = decode_response(response_of(
      kClusterLoadAssignmentTypeUrl, resource_of(kClusterLoadAssignmentTypeUrl, bytes)));
  REQUIRE(decoded.ok());
  CHECK(decoded->nack_detail.empty());
  const std::size_t weight = weigh(bytes, *ClusterLoadAssignment::descriptor(), kMaxDecodedMemory);
  INFO(weight / kMaxEndpointsPerCluster << " an endpoint");
  CHECK(weight < kMaxDecodedMemory / 4);
}

// The test counts allocations in place of time. It permits those of protobuf's decoding, and 1,000
// more.
TEST_CASE("response memory: once the parsing is abandoned no list of a resource is read further",
          "[xds][parse][memory]") {
  ClusterLoadAssignment endpoints;
  endpoints.set_cluster_name("e");
  auto* locality = endpoints.add_endpoints();
  locality->mutable_locality();
  locality->mutable_load_balancing_weight()->set_value(1);
  const auto status = GENERATE(envoy::config::core::v3::HEALTHY, envoy::config::core::v3::DEGRADED);
  for (int i = 0; i < 10'000; ++i) {
    auto* endpoint = locality->add_lb_endpoints();
    endpoint->set_health_status(status);
    auto* address = endpoint->mutable_endpoint()->mutable_address()->mutable_socket_address();
    address->set_address(absl::StrCat("10.0.", i >> 8, ".", i & 255));
    address->set_port_value(8080);
  }
  RouteConfiguration routes;
  routes.set_name("r");
  auto* host = routes.add_virtual_hosts();
  host->add_domains("*");
  for (int i = 0; i < 3000; ++i) {
    auto* route = host->add_routes();
    route->mutable_match()->mutable_safe_regex()->set_regex(absl::StrCat("/service", i, "/.*"));
    route->mutable_route()->set_cluster("c");
  }
  ParseOptions options;
  options.abandoned = std::make_shared<const std::atomic<bool>>(true);
  const auto check = [&](ResourceType type, const auto& proto) {
    const std::string bytes = proto.SerializeAsString();
    const auto parse = [&](const ParseOptions& with) {
      return parse_resource(type, type_url_of(type), bytes, with).resource.status();
    };
    using Proto = std::decay_t<decltype(proto)>;
    const Cost decoding = cost_of([&] {
      ::google::protobuf::Arena arena;
      const bool on_arena = type == ResourceType::kEndpoints;
      Proto on_heap;
      Proto* decoded =
          on_arena ? ::google::protobuf::Arena::CreateMessage<Proto>(&arena) : &on_heap;
      REQUIRE(decoded->ParseFromString(bytes));
    });
    const Cost cost = cost_of([&] { CHECK(absl::IsCancelled(parse(options))); });
    INFO(to_string(type) << ": " << cost.allocations << " allocations, " << decoding.allocations
                         << " for decoding");
    CHECK(cost.allocations <= decoding.allocations + 1000);
    CHECK(parse({}).ok());
  };
  check(ResourceType::kEndpoints, endpoints);
  check(ResourceType::kRouteConfig, routes);
}

TEST_CASE("response memory: a resource beyond the response's memory spoils no other",
          "[xds][parse][limits][A46]") {
  const std::string kEds(kClusterLoadAssignmentTypeUrl);
  const auto small = [&](const std::string& name) { return resource_of(kEds, field(1, name)); };
  ParseOptions options;
  options.limits.max_decoded_memory = 8 * kMegabyte;
  const std::string heavy =
      resource_of(kEds, field(1, "heavy") + repeated(field(2, ""), kMegabyte));
  const auto decoded = decode_response(response_of(kEds, small("a") + heavy + small("b")), options);
  REQUIRE(decoded.ok());
  const auto& resources = decoded->received.resources;
  REQUIRE(resources.size() == 3);
  CHECK(resources[0].resource.ok());
  CHECK(resources[1].name == "heavy");
  CHECK(resources[1].rejection == Rejection{RejectionReason::kLimit, "max_decoded_memory"});
  CHECK(resources[2].resource.ok());
  CHECK(decoded->nack_detail ==
        "EDS resource \"heavy\": the resources of a response must not take more than 8388608 bytes "
        "when decoded, found more (limit max_decoded_memory)");
}

// --- regular expressions ----------------------------------------------------

namespace {

// `routes` routes with `patterns` patterns each. There are `different` different patterns in all.
std::string routes_with_patterns(std::size_t routes, std::size_t patterns, std::size_t different) {
  RouteConfiguration config;
  config.set_name("r");
  auto* host = config.add_virtual_hosts();
  host->add_domains("*");
  std::size_t number = 0;
  for (std::size_t i = 0; i < routes; ++i) {
    auto* route = host->add_routes();
    route->mutable_match()->set_prefix("/");
    route->mutable_route()->set_cluster("c");
    for (std::size_t j = 0; j < patterns; ++j) {
      auto* header = route->mutable_match()->add_headers();
      header->set_name("x-user");
      header->mutable_safe_regex_match()->set_regex(
          absl::StrCat("user-", number++ % different, "-[a-z0-9]{8}(\\.example\\.com)?"));
    }
  }
  return response_of(kRouteConfigurationTypeUrl,
                     resource_of(kRouteConfigurationTypeUrl, config.SerializeAsString()));
}

}  // namespace

TEST_CASE("response memory: 3,000 routes with 30 patterns each are refused by the limit's name",
          "[xds][parse][limits][memory]") {
  const std::string bytes = routes_with_patterns(3000, 30, 90'000);
  const Cost cost = cost_of([&] {
    const auto decoded = decode_response(bytes);
    REQUIRE(decoded.ok());
    REQUIRE(decoded->received.resources.size() == 1);
    CHECK(decoded->received.resources[0].rejection ==
          Rejection{RejectionReason::kLimit, "max_regexes"});
    CHECK(decoded->nack_detail.find("a response must have at most 10000 different patterns, found "
                                    "\"user-10000-") != std::string::npos);
  });
  INFO(cost.memory << " bytes, " << cost.allocations << " allocations");
  CHECK(cost.memory < 200 * kMegabyte);
  CHECK(cost.allocations < 3'000'000);
}

TEST_CASE("response memory: a pattern is compiled once, wherever it stands",
          "[xds][parse][limits][memory]") {
  const std::string bytes = routes_with_patterns(3000, 30, 30);
  KnownResources known;
  const Cost cost = cost_of([&] {
    const auto decoded = decode_response(bytes, {}, &known);
    REQUIRE(decoded.ok());
    CHECK(decoded->nack_detail.empty());
  });
  INFO(cost.memory << " bytes, " << cost.allocations << " allocations");
  CHECK(cost.allocations < 2'500'000);
  CHECK(known.patterns(ResourceType::kRouteConfig).size() == 30);
}

// --- resource files ---------------------------------------------------------

TEST_CASE("response memory: a resource file costs what its bytes do",
          "[xds][resource_file][limits][memory]") {
  const auto row = GENERATE(values<std::pair<std::string, std::string>>({
      {"{},", "]}"},
      {"[],", "]}"},
      {"0,", "]}"},
      {"[[[[[[[[0]]]]]]]],", "]}"},
      {"{\"a\":{\"a\":{\"a\":1}}},", "]}"},
  }));
  std::string text = "{\"resources\":[" + repeated(row.first, 60 * kMegabyte);
  text.pop_back();
  text += row.second;
  const Cost cost = cost_of([&] {
    const auto resources = parse_resources_text(text, Format::kJson, "f.json");
    CHECK(absl::IsResourceExhausted(resources.status()));
    CHECK(std::string(resources.status().message()).find("(limit max_file_values)") !=
          std::string::npos);
  });
  INFO(row.first << ": " << text.size() << " bytes, " << cost.memory << " of memory, "
                 << cost.allocations << " allocations");
  CHECK(cost.memory <= 5 * text.size());
  CHECK(cost.allocations < 20'000'000);
}

TEST_CASE("response memory: a YAML file costs no more than its values may",
          "[xds][resource_file][limits][memory]") {
  const std::string text = "resources:\n" + repeated("- {}\n", 60 * kMegabyte);
  const Cost cost = cost_of([&] {
    const auto resources = parse_resources_text(text, Format::kYaml, "f.yaml");
    CHECK(std::string(resources.status().message()).find("(limit max_file_values)") !=
          std::string::npos);
  });
  INFO(text.size() << " bytes, " << cost.memory << " of memory, " << cost.allocations
                   << " allocations");
  CHECK(cost.memory <= 5 * text.size());
}

TEST_CASE("resource file: of many errors the first are told, and the number of the others",
          "[xds][resource_file][limits]") {
  std::string text = "{\"resources\":[" + repeated("{},", 300'000);
  text.back() = ']';
  text += "}";
  const Cost cost = cost_of([&] {
    const auto resources = parse_resources_text(text, Format::kJson, "f.json");
    const std::string error(resources.status().message());
    CHECK(error.find("f.json: resources[15]: @type: expected") != std::string::npos);
    CHECK(error.find("resources[16]") == std::string::npos);
    CHECK(error.ends_with("; and 99984 more errors"));
  });
  CHECK(cost.memory <= 100 * text.size());
}

}  // namespace signalbox::xds
