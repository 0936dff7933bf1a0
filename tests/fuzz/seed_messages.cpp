// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seed_messages.hpp"

#include <google/protobuf/text_format.h>

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/resource_seeds.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fuzz {
namespace {

namespace protobuf = ::google::protobuf;
using protobuf::Message;

constexpr ResourceType kTypes[] = {ResourceType::kListener,
                                   ResourceType::kRouteConfig,
                                   ResourceType::kCluster,
                                   ResourceType::kEndpoints};

// Resolves Envoy's type URLs to signalbox's own copies of the messages.
class ApiFinder final : public protobuf::TextFormat::Finder {
 public:
  const protobuf::Descriptor* FindAnyType(const Message&,
                                          const std::string&,
                                          const std::string& name) const override {
    return xds::find_message(name);
  }
};

std::unique_ptr<Message> message_of(const tests::ResourceSeed& seed) {
  const ApiFinder finder;
  protobuf::TextFormat::Parser parser;
  parser.SetFinder(&finder);
  std::unique_ptr<Message> message(resource_prototype(seed.type).New());
  const bool parsed = parser.ParseFromString(seed.text, message.get());
  SIGNALBOX_INVARIANT(parsed, "a resource seed is a message in text format");
  return message;
}

Donors make_donors() {
  Donors donors;
  for (const ResourceType type : kTypes) {
    envoy::service::discovery::v3::DiscoveryResponse response;
    response.set_type_url(std::string(xds::type_url_of(type)));
    response.set_version_info("1");
    response.set_nonce("n");
    for (const tests::ResourceSeed& seed : tests::kResourceSeeds) {
      if (seed.type != type) continue;
      const auto message = message_of(seed);
      donors.add(*message);
      protobuf::Any& any = *response.add_resources();
      any.set_type_url(response.type_url());
      any.set_value(message->SerializeAsString());
    }
    auto& error = *response.add_resource_errors();
    error.mutable_resource_name()->set_name("gone");
    error.mutable_error_detail()->set_code(5);
    donors.add(response);
  }
  return donors;
}

}  // namespace

const Message& resource_prototype(ResourceType type) {
  const std::string type_url(xds::type_url_of(type));
  return *protobuf::MessageFactory::generated_factory()->GetPrototype(xds::find_message(type_url));
}

const Donors& seed_donors() {
  static const Donors donors = make_donors();
  return donors;
}

}  // namespace signalbox::fuzz
