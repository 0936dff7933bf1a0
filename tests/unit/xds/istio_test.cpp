// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap of Istio's agent, and the resources that istiod sends a proxyless client
// (tests/support/istio): all are ACKed.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/support/parse_options.hpp"
#include "xds/bootstrap.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(std::string(SIGNALBOX_ISTIO) + "/" + file);
  std::ostringstream text;
  text << in.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

}  // namespace

TEST_CASE("istio: the bootstrap of its agent is read", "[xds][A27]") {
  const auto bootstrap = parse_bootstrap(text_of("bootstrap.json"), "bootstrap.json");
  INFO(bootstrap.status());
  REQUIRE(bootstrap.ok());
  REQUIRE(bootstrap->servers.size() == 1);
  CHECK(bootstrap->servers.front().server_uri == "127.0.0.1:15010");
  CHECK(bootstrap->node.id == "sidecar~127.0.0.1~client-sb.default~default.svc.cluster.local");
  CHECK(bootstrap->certificate_providers.contains("default"));
}

TEST_CASE("istio: every resource of its responses is taken", "[xds][parse][A27]") {
  const auto resources =
      parse_resources_text(text_of("resources.json"), Format::kJson, "resources.json");
  INFO(resources.status());
  REQUIRE(resources.ok());
  std::map<std::string, envoy::service::discovery::v3::DiscoveryResponse> responses;
  for (const ResourceBytes& resource : *resources) {
    auto& response = responses[resource.type_url];
    response.set_type_url(resource.type_url);
    auto* any = response.add_resources();
    any->set_type_url(resource.type_url);
    any->set_value(resource.bytes);
  }
  CHECK(responses.size() == 4);
  ParseOptions options = all_parse_options();
  options.certificate_providers = {"default"};
  for (const auto& [type_url, response] : responses) {
    INFO(type_url);
    const auto decoded = decode_response(response.SerializeAsString(), options);
    REQUIRE(decoded.ok());
    CHECK(decoded->nack_detail.empty());
    CHECK(decoded->received.resources.size() ==
          static_cast<std::size_t>(response.resources_size()));
  }
}

}  // namespace signalbox::xds
