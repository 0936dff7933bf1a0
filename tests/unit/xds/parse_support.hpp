// SPDX-License-Identifier: Apache-2.0
//
// For tests of the parsers: resources in protobuf's text format, and results as values or as error
// texts.
//
//   R"(name: "orders" type: EDS)" ─▶ [serialise] ─▶ parser ─▶ [value_of | error_of]
//
// An Any is written as the API spells it: [type.googleapis.com/envoy.….ClusterConfig] { … }.

#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

#include <catch2/catch.hpp>
#include <google/protobuf/text_format.h>

#include "messages/xds_events.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {

/// Finds our copies of the API's messages by the API's type URLs.
class ApiFinder final : public ::google::protobuf::TextFormat::Finder {
 public:
  const ::google::protobuf::Descriptor* FindAnyType(const ::google::protobuf::Message&,
                                                    const std::string&,
                                                    const std::string& name) const override {
    return find_message(name);
  }
};

template <typename Message>
Message from_text(const std::string& text) {
  ApiFinder finder;
  ::google::protobuf::TextFormat::Parser parser;
  parser.SetFinder(&finder);
  Message message;
  if (!parser.ParseFromString(text, &message)) throw std::logic_error("no text proto: " + text);
  return message;
}

template <typename Message>
std::string serialise(const std::string& text) {
  return from_text<Message>(text).SerializeAsString();
}

/// The text of the error; empty if the resource is valid.
inline std::string error_of(const ReceivedResource& received) {
  return received.resource.ok() ? "" : std::string(received.resource.status().message());
}

/// The resource, which must be valid.
template <typename Value>
const Value& value_of(const ReceivedResource& received) {
  INFO(error_of(received));
  REQUIRE(received.resource.ok());
  return *std::get<std::shared_ptr<const Value>>(*received.resource);
}

}  // namespace signalbox::xds
