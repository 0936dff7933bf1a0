// SPDX-License-Identifier: Apache-2.0
#include "xds/resource_file.hpp"

#include <array>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using nlohmann::json;

constexpr absl::string_view kListName = "resources";

absl::string_view name_field_of(absl::string_view type_url) {
  return type_url == kClusterLoadAssignmentTypeUrl ? "cluster_name" : "name";
}

// The value of a string field of the resource. Fails if no receiver could parse the bytes: protobuf
// limits the depth of messages, and one level of a Struct takes three levels.
// Precondition: the bytes are of the type of the URL, and `field` is a string field of that type.
absl::StatusOr<std::string> read_string(const ResourceBytes& resource, absl::string_view field) {
  const protobuf::Descriptor* descriptor = find_message(resource.type_url);
  const std::unique_ptr<protobuf::Message> message(
      protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
  if (!message->ParseFromString(resource.bytes)) {
    return absl::InvalidArgumentError("nested too deeply for a message");
  }
  return message->GetReflection()->GetString(*message,
                                             descriptor->FindFieldByName(std::string(field)));
}

// The resource type that `@type` of an object names; an error if `@type` is missing or names no
// resource type.
absl::StatusOr<std::string> resource_type(const json& object) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an object, found ", object.type_name()));
  }
  const auto type = object.find("@type");
  if (type == object.end() || !type->is_string()) {
    return absl::InvalidArgumentError("@type: expected the type URL of a resource, found none");
  }
  std::string type_url = type->get<std::string>();
  if (!resource_type_of(type_url)) {
    return absl::InvalidArgumentError(absl::StrCat("@type: \"",
                                                   type_url,
                                                   "\" is no resource; a resource is ",
                                                   absl::StrJoin({kListenerTypeUrl,
                                                                  kRouteConfigurationTypeUrl,
                                                                  kClusterTypeUrl,
                                                                  kClusterLoadAssignmentTypeUrl},
                                                                 ", ")));
  }
  return type_url;
}

// Returns the text for "a value of type `type` is expected". `type` is protobuf's name of the type.
std::string expected(absl::string_view type) {
  constexpr std::array<std::pair<absl::string_view, absl::string_view>, 9> kPlain{{
      {"TYPE_BOOL", "true or false"},
      {"TYPE_BYTES", "bytes as base64 text"},
      {"TYPE_DOUBLE", "a number"},
      {"TYPE_FLOAT", "a number"},
      {"TYPE_INT32", "a whole number of 32 bits"},
      {"TYPE_INT64", "a whole number of 64 bits"},
      {"TYPE_STRING", "text"},
      {"TYPE_UINT32", "a whole number from 0 to 4294967295"},
      {"TYPE_UINT64", "a whole number from 0 to 18446744073709551615"},
  }};
  for (const auto& [name, plain] : kPlain) {
    if (name == type) return std::string(plain);
  }
  return absl::StrCat("a value of ", api_name(type));
}

// Converts protobuf's error text for a value of a wrong type to `PATH: expected …, found …`. For
// durations protobuf has another error text: "Field 'f', Invalid data type for duration, value is
// 2".
std::string in_our_form(absl::string_view path, absl::string_view value, absl::string_view type) {
  const bool is_duration = absl::EndsWith(type, "/google.protobuf.Duration");
  if (!is_duration || !absl::StartsWith(value, "Field '"))
    return absl::StrCat(path, ": expected ", expected(type), ", found ", value);
  constexpr absl::string_view kValue = ", value is ";
  const std::size_t at = value.find(kValue);
  const std::string found = at != absl::string_view::npos
                                ? absl::StrCat("found ", value.substr(at + kValue.size()))
                            : absl::StrContains(value, "end with 's'") ? "the text must end with s"
                                                                       : "found another text";
  return absl::StrCat(path, ": expected text such as \"2s\" or \"0.5s\", ", found);
}

// Converts protobuf's error text for a resource. "Cannot find field" would suggest a misspelt
// field, but most such fields exist in Envoy, and signalbox does not read them.
std::string in_our_form(absl::string_view why) {
  if (absl::ConsumeSuffix(&why, ": Cannot find field."))
    return absl::StrCat(why, ": signalbox reads no such field, or it is misspelt");
  if (absl::ConsumeSuffix(&why, ": Proto field is not repeating, cannot start list."))
    return absl::StrCat(why, ": expected one value, found a list");
  constexpr absl::string_view kInvalid = "): invalid value ";
  constexpr absl::string_view kType = " for type ";
  const std::size_t value = why.find(kInvalid);
  const std::size_t type = why.rfind(kType);
  const bool is_known = absl::StartsWith(why, "(") && value != absl::string_view::npos &&
                        type != absl::string_view::npos && type > value;
  if (!is_known) return std::string(why);
  const std::size_t begin = value + kInvalid.size();
  return in_our_form(
      why.substr(1, value - 1), why.substr(begin, type - begin), why.substr(type + kType.size()));
}

absl::StatusOr<ResourceBytes> to_resource(json object, protobuf::util::TypeResolver& resolver) {
  auto type_url = resource_type(object);
  if (!type_url.ok()) return type_url.status();
  object.erase("@type");

  ResourceBytes resource{.type_url = *std::move(type_url), .name = {}, .bytes = {}};
  // Bytes that are not UTF-8 are replaced: dump() would throw.
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  const auto status =
      protobuf::util::JsonToBinaryString(&resolver, resource.type_url, text, &resource.bytes);
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(api_name(resource.type_url), ": ", why));
  };
  if (!status.ok()) return invalid(in_our_form(std::string(status.message())));
  const absl::string_view name_field = name_field_of(resource.type_url);
  auto name = read_string(resource, name_field);
  if (!name.ok()) return invalid(name.status().message());
  if (name->empty()) return invalid(absl::StrCat(name_field, ": must not be empty"));
  resource.name = *std::move(name);
  return resource;
}

std::string place_of(absl::string_view file_name, const Document& document, std::size_t index) {
  const auto lines = document.lines.find(std::string(kListName));
  const std::string line =
      lines == document.lines.end() ? "" : absl::StrCat("line ", lines->second[index], ": ");
  return absl::StrCat(file_name, ": ", line, kListName, "[", index, "]: ");
}

absl::Status beyond(absl::string_view file_name,
                    absl::string_view what,
                    std::size_t most,
                    std::size_t found,
                    absl::string_view limit) {
  return absl::ResourceExhaustedError(absl::StrCat(file_name,
                                                   ": must have at most ",
                                                   most,
                                                   " ",
                                                   what,
                                                   ", found ",
                                                   found,
                                                   " (limit ",
                                                   limit,
                                                   ")"));
}

}  // namespace

Format format_of(absl::string_view file_name) {
  return absl::EndsWithIgnoreCase(file_name, ".json") ? Format::kJson : Format::kYaml;
}

absl::StatusOr<Document> parse_file_document(absl::string_view text,
                                             Format format,
                                             absl::string_view file_name,
                                             const Limits& limits) {
  if (text.size() > limits.max_file_bytes)
    return beyond(file_name, "bytes", limits.max_file_bytes, text.size(), "max_file_bytes");
  auto document = format == Format::kJson ? parse_json_document(text, limits.max_file_values)
                                          : parse_yaml_document(text, limits.max_file_values);
  if (document.ok()) return document;
  return absl::Status(document.status().code(),
                      absl::StrCat(file_name, ": ", document.status().message()));
}

absl::StatusOr<PlacedResources> read_resources(const Document& document,
                                               absl::string_view file_name,
                                               const Limits& limits) {
  const json& root = document.root;
  if (!root.is_object() || !root.contains(kListName) || !root[std::string(kListName)].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ": expected an object with the list \"", kListName, "\""));
  }
  const json& list = root[std::string(kListName)];
  if (list.size() > limits.max_resources)
    return beyond(file_name, "resources", limits.max_resources, list.size(), "max_resources");

  const auto resolver = make_type_resolver();
  PlacedResources read;
  std::vector<std::string> errors;
  std::size_t error_count = 0;
  std::set<std::pair<std::string, std::string>> seen;
  std::size_t index = 0;
  const auto add_error = [&](absl::string_view what) {
    if (++error_count > kMaxKeptErrors) return;
    errors.push_back(absl::StrCat(place_of(file_name, document, index), what));
  };
  for (const json& object : list) {
    auto resource = to_resource(object, *resolver);
    if (!resource.ok()) {
      add_error(resource.status().message());
    } else if (!seen.emplace(resource->type_url, resource->name).second) {
      add_error(
          absl::StrCat(api_name(resource->type_url), " \"", resource->name, "\" occurs twice"));
    } else {
      read.resources.push_back(*std::move(resource));
      read.places.push_back(place_of(file_name, document, index));
    }
    ++index;
  }
  if (error_count > errors.size())
    errors.push_back(absl::StrCat("and ", error_count - errors.size(), " more errors"));
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "; "));
  return read;
}

absl::StatusOr<std::vector<ResourceBytes>> parse_resources_text(absl::string_view text,
                                                                Format format,
                                                                absl::string_view file_name,
                                                                const Limits& limits) {
  const auto document = parse_file_document(text, format, file_name, limits);
  if (!document.ok()) return document.status();
  auto read = read_resources(*document, file_name, limits);
  if (!read.ok()) return read.status();
  return std::move(read->resources);
}

}  // namespace signalbox::xds
