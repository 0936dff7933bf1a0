// SPDX-License-Identifier: Apache-2.0
#include "xds/type_url.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "google/protobuf/duration.pb.h"
#include "google/protobuf/type.pb.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/printed.hpp"

namespace signalbox::xds {
namespace {

// The names of all top-level messages in our .proto files for resources, without the prefix
// "signalbox.". The messages of recordings are never found by a type URL.
std::vector<std::string> top_level_messages() {
  const std::regex package_line(R"(^package signalbox\.([\w.]+);)");
  const std::regex message_line(R"(^message (\w+) )");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SIGNALBOX_XDS_PROTO_DIR)) {
    if (entry.path().extension() != ".proto") continue;
    if (entry.path().filename() == "recording.proto") continue;
    std::ifstream file(entry.path());
    std::string package;
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (std::regex_search(line, match, package_line)) {
        package = match[1];
      } else if (std::regex_search(line, match, message_line)) {
        names.push_back(package + "." + match[1].str());
      }
    }
  }
  return names;
}

TEST_CASE("type_url: is the name in the API behind the host", "[xds][A27]") {
  CHECK(type_url_of<envoy::config::listener::v3::Listener>() == kListenerTypeUrl);
  CHECK(type_url_of<envoy::config::route::v3::RouteConfiguration>() == kRouteConfigurationTypeUrl);
  CHECK(type_url_of<envoy::config::cluster::v3::Cluster>() == kClusterTypeUrl);
  CHECK(type_url_of<envoy::config::endpoint::v3::ClusterLoadAssignment>() ==
        kClusterLoadAssignmentTypeUrl);
  CHECK(type_url_of<::google::protobuf::Duration>() ==
        "type.googleapis.com/google.protobuf.Duration");
}

TEST_CASE("type_url: every resource type has one, and back", "[xds][A27]") {
  CHECK(type_url_of(ResourceType::kListener) == kListenerTypeUrl);
  CHECK(type_url_of(ResourceType::kRouteConfig) == kRouteConfigurationTypeUrl);
  CHECK(type_url_of(ResourceType::kCluster) == kClusterTypeUrl);
  CHECK(type_url_of(ResourceType::kEndpoints) == kClusterLoadAssignmentTypeUrl);
  for (const auto type : {ResourceType::kListener,
                          ResourceType::kRouteConfig,
                          ResourceType::kCluster,
                          ResourceType::kEndpoints}) {
    CHECK(resource_type_of(type_url_of(type)) == type);
  }
  CHECK(resource_type_of("type.googleapis.com/xds.type.v3.TypedStruct") == std::nullopt);
}

TEST_CASE("type_url: every message of our .proto files is linked in and found", "[xds]") {
  const auto names = top_level_messages();
  REQUIRE(names.size() > 50);
  for (const std::string& name : names) {
    INFO(name);
    const auto* found = find_message("type.googleapis.com/" + name);
    REQUIRE(found != nullptr);
    CHECK(found->full_name() == "signalbox." + name);
    CHECK(type_url_of(*found) == "type.googleapis.com/" + name);
  }
}

TEST_CASE("type_url: our own spelling and unknown names find nothing", "[xds]") {
  CHECK(find_message("type.googleapis.com/signalbox.envoy.config.cluster.v3.Cluster") == nullptr);
  CHECK(find_message("type.googleapis.com/envoy.config.cluster.v3.Nothing") == nullptr);
  CHECK(find_message("") == nullptr);
}

TEST_CASE("type_url: the resolver speaks the API's names in both directions", "[xds]") {
  const auto resolver = make_type_resolver();
  ::google::protobuf::Type type;
  REQUIRE(resolver->ResolveMessageType(std::string(kClusterTypeUrl), &type).ok());
  for (const auto& field : type.fields()) {
    INFO(field.name());
    CHECK(field.type_url().find("signalbox") == std::string::npos);
  }

  ::google::protobuf::Enum known;
  const std::string health = "type.googleapis.com/envoy.config.core.v3.HealthStatus";
  REQUIRE(resolver->ResolveEnumType(health, &known).ok());
  CHECK(known.enumvalue_size() == 6);
  CHECK_FALSE(resolver->ResolveEnumType(health + "Nothing", &known).ok());
  CHECK_FALSE(resolver->ResolveMessageType("type.googleapis.com/no.Such", &type).ok());
}

}  // namespace
}  // namespace signalbox::xds
