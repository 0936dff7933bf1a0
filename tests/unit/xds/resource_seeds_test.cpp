// SPDX-License-Identifier: Apache-2.0
//
// The seeds of tests/support/resource_seeds: each is valid, and no two are equal. A seed that is
// cut short or changed in one byte gets an answer, too.
#include "tests/support/resource_seeds.hpp"

#include <catch2/catch.hpp>
#include <google/protobuf/stubs/logging.h>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/parse_options.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/client/resource_cache.hpp"
#include "xds/parse/parse_resource.hpp"

namespace signalbox::xds::resource_seeds_test {
namespace {

std::string bytes_of(const tests::ResourceSeed& seed) {
  switch (seed.type) {
    case ResourceType::kListener:
      return serialise<envoy::config::listener::v3::Listener>(seed.text);
    case ResourceType::kRouteConfig:
      return serialise<envoy::config::route::v3::RouteConfiguration>(seed.text);
    case ResourceType::kCluster:
      return serialise<envoy::config::cluster::v3::Cluster>(seed.text);
    case ResourceType::kEndpoints:
      return serialise<envoy::config::endpoint::v3::ClusterLoadAssignment>(seed.text);
  }
  return "";
}

ReceivedResource parse(const tests::ResourceSeed& seed, absl::string_view bytes) {
  return parse_resource(seed.type, std::string(type_url_of(seed.type)), bytes, all_parse_options());
}

}  // namespace

TEST_CASE("resource seeds: every one is valid, and equals itself alone", "[xds][parse][seeds]") {
  std::vector<Resource> resources;
  for (const tests::ResourceSeed& seed : tests::kResourceSeeds) {
    const auto received = parse(seed, bytes_of(seed));
    INFO(seed.name << ": " << error_of(received));
    REQUIRE(received.resource.ok());
    CHECK_FALSE(received.rejection.has_value());
    resources.push_back(*received.resource);
  }
  for (std::size_t i = 0; i < resources.size(); ++i) {
    for (std::size_t j = 0; j < resources.size(); ++j) {
      CAPTURE(tests::kResourceSeeds[i].name, tests::kResourceSeeds[j].name);
      const auto again = parse(tests::kResourceSeeds[j], bytes_of(tests::kResourceSeeds[j]));
      CHECK(same_content(resources[i], *again.resource) == (i == j));
    }
  }
}

// Whatever the bytes, the parser gives either a resource or a rejection. Most shortened seeds
// cannot be decoded; a seed that is cut between two fields can be, and lacks fields.
TEST_CASE("resource seeds: cut short or changed in one byte, there is an answer",
          "[xds][parse][seeds]") {
  // protobuf logs texts that are not UTF-8.
  const ::google::protobuf::LogSilencer silence;
  const auto answer = [](const tests::ResourceSeed& seed, const std::string& bytes) {
    const auto received = parse(seed, bytes);
    return received.resource.ok() != received.rejection.has_value();
  };
  for (const tests::ResourceSeed& seed : tests::kResourceSeeds) {
    INFO(seed.name);
    const std::string whole = bytes_of(seed);
    bool answered = true;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      answered = answered && answer(seed, whole.substr(0, i));
      for (const char mask : {'\x01', '\x08', '\x7f', '\x80'}) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ mask);
        answered = answered && answer(seed, changed);
      }
    }
    CHECK(answered);
  }
}

}  // namespace signalbox::xds::resource_seeds_test
