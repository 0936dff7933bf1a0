// SPDX-License-Identifier: Apache-2.0
#include "tools/load/payload.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <google/protobuf/descriptor.pb.h>

namespace signalbox::tools {
namespace {

namespace pb = google::protobuf;

// message Order { int32 id = 1; repeated string items = 2; }
// service Orders {
//   rpc Place(Order) returns (Order);
//   rpc Watch(Order) returns (stream Order);
//   rpc Upload(stream Order) returns (Order);
//   rpc Chat(stream Order) returns (stream Order);
// }
pb::FileDescriptorSet orders() {
  pb::FileDescriptorSet set;
  auto& file = *set.add_file();
  file.set_name("orders.proto");
  file.set_package("orders.v1");
  file.set_syntax("proto3");
  auto& order = *file.add_message_type();
  order.set_name("Order");
  auto& id = *order.add_field();
  id.set_name("id");
  id.set_number(1);
  id.set_type(pb::FieldDescriptorProto::TYPE_INT32);
  id.set_label(pb::FieldDescriptorProto::LABEL_OPTIONAL);
  auto& items = *order.add_field();
  items.set_name("items");
  items.set_number(2);
  items.set_type(pb::FieldDescriptorProto::TYPE_STRING);
  items.set_label(pb::FieldDescriptorProto::LABEL_REPEATED);
  auto& service = *file.add_service();
  service.set_name("Orders");
  const auto add_method = [&service](const char* name, bool client_streams, bool server_streams) {
    auto& method = *service.add_method();
    method.set_name(name);
    method.set_input_type(".orders.v1.Order");
    method.set_output_type(".orders.v1.Order");
    method.set_client_streaming(client_streams);
    method.set_server_streaming(server_streams);
  };
  add_method("Place", false, false);
  add_method("Watch", false, true);
  add_method("Upload", true, false);
  add_method("Chat", true, true);
  return set;
}

constexpr const char* kPlace = "/orders.v1.Orders/Place";

}  // namespace

TEST_CASE("payload: JSON becomes the message's bytes", "[load][payload]") {
  const auto payload =
      payload_of_json(orders().SerializeAsString(), kPlace, R"({"id": 7, "items": ["a"]})");
  REQUIRE(payload.status().ToString() == "OK");
  CHECK(payload->bytes == std::string("\x08\x07\x12\x01"
                                      "a"));
  CHECK_FALSE(payload->is_streaming);
}

TEST_CASE("payload: the descriptor says that the server streams", "[load][payload]") {
  const auto payload =
      payload_of_json(orders().SerializeAsString(), "/orders.v1.Orders/Watch", "{}");
  REQUIRE(payload.status().ToString() == "OK");
  CHECK(payload->bytes.empty());
  CHECK(payload->is_streaming);
}

TEST_CASE("payload: what does not fit is refused with its reason", "[load][payload]") {
  struct Row {
    const char* method;
    const char* json;
    const char* why;
    absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  };

  const Row row =
      GENERATE(Row{kPlace, R"({"id": "x"})", "the JSON is no orders.v1.Order: "},
               Row{kPlace, R"({"id": "x"})", "id"},
               Row{kPlace, R"({"nr": 7})", "nr"},
               Row{kPlace, R"({"id": 7)", "the JSON is no orders.v1.Order: "},
               Row{kPlace, R"({"id": 7)", " At byte 9: the end"},
               Row{kPlace, R"({"id": ?})", " At byte 8: ?}"},
               Row{"/orders.v1.Orders/Cancel",
                   "{}",
                   "has no method 'Cancel'; it has: Place, Watch, Upload, Chat",
                   absl::StatusCode::kNotFound},
               Row{"/orders.v1.Shop/Place",
                   "{}",
                   "there is no service 'orders.v1.Shop'",
                   absl::StatusCode::kNotFound},
               Row{"/orders.v1.Orders/Upload",
                   "{}",
                   "/orders.v1.Orders/Upload is a client-streaming method; only unary and "},
               Row{"/orders.v1.Orders/Chat",
                   "{}",
                   "/orders.v1.Orders/Chat is a bidirectional-streaming method; only unary and "});
  CAPTURE(row.method, row.json);
  const auto payload = payload_of_json(orders().SerializeAsString(), row.method, row.json);
  CHECK(payload.status().code() == row.code);
  CHECK_THAT(std::string(payload.status().message()), Catch::Contains(row.why));
}

TEST_CASE("payload: a protoset that is none or not whole is refused", "[load][payload]") {
  CHECK_THAT(std::string(payload_of_json("text", kPlace, "{}").status().message()),
             Catch::Contains("no descriptor set"));
  pb::FileDescriptorSet set = orders();
  set.mutable_file(0)->add_dependency("missing.proto");
  CHECK_THAT(std::string(payload_of_json(set.SerializeAsString(), kPlace, "{}").status().message()),
             Catch::Contains("--include_imports"));
}

TEST_CASE("payload: the method's path in each of its forms", "[load][payload]") {
  CHECK(*method_path_of("orders.v1.Orders/Place") == kPlace);
  CHECK(*method_path_of("/orders.v1.Orders/Place") == kPlace);
  CHECK(*method_path_of("orders.v1.Orders.Place") == kPlace);
  for (const char* bad : {"", "/", "Place", "/Place", "a/b/c", "Orders/"})
    CHECK_FALSE(method_path_of(bad).ok());
}

}  // namespace signalbox::tools
