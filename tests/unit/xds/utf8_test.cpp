// SPDX-License-Identifier: Apache-2.0
//
// Strings that are not UTF-8: the error names the field, and the resource if its name could be
// read. Nothing is logged, and valid resources are not affected.
#include "xds/utf8.hpp"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/stubs/logging.h>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/parse_resource.hpp"

namespace signalbox::xds::utf8_test {
namespace {

namespace protobuf = ::google::protobuf;
using ClusterProto = envoy::config::cluster::v3::Cluster;
using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::listener::v3::Listener;
using envoy::service::discovery::v3::DiscoveryResponse;
using ResourceWrapper = envoy::service::discovery::v3::Resource;

std::size_t logged = 0;

void count_line(protobuf::LogLevel, const char*, int, const std::string&) {
  ++logged;
}

// Counts protobuf's log messages during its lifetime.
class LogCount {
 public:
  LogCount() : before_(protobuf::SetLogHandler(count_line)) { logged = 0; }

  LogCount(const LogCount&) = delete;
  LogCount& operator=(const LogCount&) = delete;

  ~LogCount() { protobuf::SetLogHandler(before_); }

 private:
  protobuf::LogHandler* before_;
};

// The serialised message, with "BAD" in one string replaced by bytes that are not UTF-8. protobuf
// would log an error if it wrote such bytes itself.
template <typename Message>
std::string with_bad_text(const std::string& text) {
  std::string bytes = serialise<Message>(text);
  const std::size_t place = bytes.find("BAD");
  REQUIRE(place != std::string::npos);
  return bytes.replace(place, 3, "b\xff\xfe");
}

ReceivedResource parse(ResourceType type, const std::string& bytes) {
  return parse_resource(type, std::string(type_url_of(type)), bytes);
}

}  // namespace

TEST_CASE("utf8: protobuf's own judgement, in silence", "[xds][parse]") {
  const LogCount log;
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("Zürich 🚦"));
  CHECK_FALSE(is_utf8("\xff"));
  CHECK_FALSE(is_utf8("cut \xc3"));
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));  // Half of a surrogate pair.
  CHECK(logged == 0);
}

TEST_CASE("parse_resource: a string that is not UTF-8 is named with its resource",
          "[xds][parse][A40]") {
  struct Row {
    const char* when;
    ResourceType type;
    std::string bytes;
    const char* name;
    const char* error;
  };

  const std::string found = " must be UTF-8, found \"b\\377\\376\"";
  const auto row = GENERATE(values<Row>({
      {"a field",
       ResourceType::kCluster,
       with_bad_text<ClusterProto>(
           "name: \"c\" type: EDS eds_cluster_config { service_name: \"BAD\" }"),
       "c",
       "CDS resource \"c\" must be a Cluster, found 12 bytes that are not: "
       "eds_cluster_config.service_name"},
      {"one of a list",
       ResourceType::kEndpoints,
       with_bad_text<ClusterLoadAssignment>("cluster_name: \"e\" endpoints { } endpoints { "
                                            "priority: 1 locality { zone: \"BAD\" } }"),
       "e",
       "EDS resource \"e\" must be a ClusterLoadAssignment, found 16 bytes that are not: "
       "endpoints[1].locality.zone"},
      {"its name",
       ResourceType::kListener,
       with_bad_text<Listener>("name: \"BAD\""),
       "",
       "LDS resource must be a Listener, found 5 bytes that are not: name"},
  }));
  DYNAMIC_SECTION(row.when) {
    const LogCount log;
    const ReceivedResource received = parse(row.type, row.bytes);
    CHECK(received.name == row.name);
    CHECK(error_of(received) == row.error + found);
    CHECK(received.rejection == Rejection{RejectionReason::kParse, ""});
    CHECK(logged == 0);
  }
}

TEST_CASE("parse_resource: within an Any, the path goes through it", "[xds][parse][A40]") {
  const LogCount log;
  ClusterProto cluster = from_text<ClusterProto>(
      "name: \"c\" cluster_type { typed_config { type_url: "
      "\"type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig\" } }");
  cluster.mutable_cluster_type()->mutable_typed_config()->set_value("\x0a\x01y\x0a\x01\xff");
  CHECK(error_of(parse(ResourceType::kCluster, cluster.SerializeAsString())) ==
        "CDS resource \"c\": cluster_type.typed_config.value: must be of type ClusterConfig, found "
        "6 bytes that are not: clusters[1] must be UTF-8, found \"\\377\"");
  CHECK(logged == 0);
}

TEST_CASE("decode_response: one resource with a bad string spoils no other", "[xds][parse][A46]") {
  const LogCount log;
  DiscoveryResponse response;
  response.set_type_url(std::string(kClusterTypeUrl));
  const std::string good = "type: EDS eds_cluster_config { eds_config { ads {} } }";
  for (const std::string& bytes :
       {serialise<ClusterProto>("name: \"a\" " + good),
        with_bad_text<ClusterProto>("name: \"b\" eds_cluster_config { service_name: \"BAD\" }"),
        serialise<ClusterProto>("name: \"c\" " + good)}) {
    auto* any = response.add_resources();
    any->set_type_url(std::string(kClusterTypeUrl));
    any->set_value(bytes);
  }
  const auto decoded = decode_response(response.SerializeAsString());
  REQUIRE(decoded.ok());
  const auto& resources = decoded->received.resources;
  REQUIRE(resources.size() == 3);
  CHECK(resources[0].resource.ok());
  CHECK(resources[1].name == "b");
  CHECK(resources[2].resource.ok());
  CHECK(is_utf8(decoded->nack_detail));
  CHECK(logged == 0);
}

TEST_CASE("decode_response: of the response itself, too", "[xds][parse]") {
  const LogCount log;
  const auto decoded =
      decode_response(with_bad_text<DiscoveryResponse>("version_info: \"BAD\" nonce: \"1\""));
  CHECK(decoded.status().message() ==
        "the server's message must be a DiscoveryResponse, found 8 bytes that are not: "
        "version_info must be UTF-8, found \"b\\377\\376\"");
  for (const char* field : {"nonce: \"BAD\"", "type_url: \"BAD\""}) {
    CHECK(
        absl::IsInvalidArgument(decode_response(with_bad_text<DiscoveryResponse>(field)).status()));
  }
  // The name stands after the invalid string, where the parser has stopped.
  const auto wrapped =
      parse_resource(ResourceType::kCluster,
                     type_url_of<ResourceWrapper>(),
                     with_bad_text<ResourceWrapper>("name: \"c\" version: \"BAD\""));
  CHECK(wrapped.name.empty());
  CHECK(error_of(wrapped) ==
        "CDS resource must be a Resource, found 8 bytes that are not: version must be UTF-8, found "
        "\"b\\377\\376\"");
  CHECK(logged == 0);
}

TEST_CASE("utf8: bytes that are no message at all are looked through safely", "[xds][parse]") {
  const auto& type = *ClusterProto::descriptor();
  CHECK_FALSE(find_bad_text("", type).has_value());
  CHECK_FALSE(find_bad_text("\x0a\x05"
                            "abc",
                            type)
                  .has_value());  // The bytes end within the name.
  CHECK_FALSE(find_bad_text("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", type).has_value());
  // The search ends at a group (a wire type of protobuf), and at a tag of 0.
  CHECK_FALSE(find_bad_text("\x0b\x0c\x0a\x01\xff", type).has_value());
  CHECK_FALSE(find_bad_text(std::string("\x00\x0a\x01\xff", 4), type).has_value());
  // Values of the other wire types before the name are passed over.
  CHECK(find_bad_text(std::string("\x10\x96\x01"
                                  "\x11"
                                  "12345678"
                                  "\x15"
                                  "1234"
                                  "\x0a\x01\xff"),
                      type)
            ->field == "name");
}

TEST_CASE("utf8: nested without end, it stops", "[xds][parse][limits]") {
  // A list in a list in a list: the search stops at a hundred levels, as protobuf does.
  const auto nested = [](int levels) {
    std::string value = "\x1a\x01\xff";  // string_value
    for (int i = 0; i < levels; ++i) {
      const auto wrap = [&value](char tag) {
        std::string size;
        for (std::size_t left = value.size(); size.empty() || left > 0; left >>= 7U)
          size += static_cast<char>((left & 0x7fU) | (left > 0x7f ? 0x80U : 0U));
        value = tag + size + value;
      };
      wrap('\x0a');  // ListValue.values
      wrap('\x32');  // Value.list_value
    }
    return value;
  };
  const auto& type = *protobuf::Value::descriptor();
  CHECK(find_bad_text(nested(2), type)->field ==
        "list_value.values[0].list_value.values[0].string_value");
  CHECK(find_bad_text(nested(49), type).has_value());
  CHECK_FALSE(find_bad_text(nested(50), type).has_value());
  CHECK_FALSE(find_bad_text(nested(1000), type).has_value());
}

}  // namespace signalbox::xds::utf8_test
