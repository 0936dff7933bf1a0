// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/extension.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "signalbox/udpa/type/v1/typed_struct.pb.h"
#include "signalbox/xds/type/v3/typed_struct.pb.h"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using TypedStruct = signalbox::xds::type::v3::TypedStruct;

nlohmann::json json_of(const protobuf::Struct& structure);

// Recursion is bounded: protobuf has parsed the value with at most a hundred levels.
nlohmann::json json_of(const protobuf::Value& value) {
  switch (value.kind_case()) {
    case protobuf::Value::kNumberValue:
      return value.number_value();
    case protobuf::Value::kStringValue:
      return value.string_value();
    case protobuf::Value::kBoolValue:
      return value.bool_value();
    case protobuf::Value::kStructValue:
      return json_of(value.struct_value());
    case protobuf::Value::kListValue: {
      nlohmann::json list = nlohmann::json::array();
      for (const protobuf::Value& item : value.list_value().values())
        list.push_back(json_of(item));
      return list;
    }
    case protobuf::Value::kNullValue:
    case protobuf::Value::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

nlohmann::json json_of(const protobuf::Struct& structure) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : structure.fields())
    object[name] = json_of(value);
  return object;
}

bool decode_structure(const protobuf::Struct& structure,
                      protobuf::Message& message,
                      const Field& field) {
  protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  std::string bytes;
  const auto status = protobuf::util::JsonToBinaryString(make_type_resolver().get(),
                                                         type_url_of(*message.GetDescriptor()),
                                                         json_text(structure),
                                                         &bytes,
                                                         options);
  if (status.ok() && message.ParseFromString(bytes)) return true;
  field.add_undecodable(absl::StrCat("must be of type ",
                                     message.GetDescriptor()->name(),
                                     ", found a structure that is not",
                                     status.ok() ? "" : ": ",
                                     std::string(status.message())));
  return false;
}

// Whether the type is xds.type.v3.TypedStruct or udpa.type.v1.TypedStruct. Both have the same
// fields.
bool is_typed_struct(absl::string_view type_url) {
  return type_url == type_url_of<TypedStruct>() ||
         type_url == type_url_of<udpa::type::v1::TypedStruct>();
}

// Returns the error message of a user's parser as UTF-8, on one line, at most kMaxBytes long.
std::string in_a_message(absl::string_view text) {
  constexpr std::size_t kMaxBytes = 1000;
  const absl::string_view kept = utf8_prefix(text, kMaxBytes);
  if (!is_utf8(kept)) return std::string(utf8_prefix(absl::CEscape(kept), kMaxBytes));
  const bool is_plain = std::ranges::none_of(kept, absl::ascii_iscntrl);
  return std::string(is_plain ? kept : utf8_prefix(absl::Utf8SafeCEscape(kept), kMaxBytes));
}

}  // namespace

std::optional<Extension> read_extension(const protobuf::Any& any, const Field& field) {
  Extension extension;
  extension.type = std::string(api_name(any.type_url()));
  if (extension.type.empty()) {
    const absl::string_view found = any.type_url();
    field.at("type_url").add(absl::StrCat("must name a type, found ", in_quotes(found)));
    return std::nullopt;
  }
  if (!is_typed_struct(any.type_url())) {
    extension.bytes = any.value();
    return extension;
  }
  const Field value = field.at("value");
  TypedStruct typed_struct;
  if (!decode(any.value(), typed_struct, value)) return std::nullopt;
  extension.type = std::string(api_name(typed_struct.type_url()));
  if (extension.type.empty()) {
    value.at("type_url").add("must be set in a TypedStruct, found none");
    return std::nullopt;
  }
  extension.structure = std::move(*typed_struct.mutable_value());
  return extension;
}

bool decode(const Extension& extension, protobuf::Message& message, const Field& field) {
  if (extension.structure.has_value())
    return decode_structure(*extension.structure, message, field);
  return decode(extension.bytes, message, field);
}

void add_refused(const Extension& extension, const absl::Status& why, const Field& field) {
  field.add(absl::StrCat(
      "must be a configuration of ", extension.type, ": ", in_a_message(why.message())));
}

std::string json_text(const protobuf::Struct& structure) {
  return json_of(structure).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const protobuf::Value& value) {
  return json_of(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace signalbox::xds
