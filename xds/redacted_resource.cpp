// SPDX-License-Identifier: Apache-2.0
#include "xds/redacted_resource.hpp"

#include "absl/strings/str_cat.h"
#include <google/protobuf/type.pb.h>
#include <google/protobuf/util/json_util.h>

#include "xds/redaction.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using Json = nlohmann::ordered_json;

// Resolves unknown types to a message without fields. An accepted resource may hold Anys of unknown
// types (an optional filter, metadata), and the JSON converter would fail on them.
class ForgivingResolver final : public protobuf::util::TypeResolver {
 public:
  protobuf::util::Status ResolveMessageType(const std::string& type_url,
                                            protobuf::Type* type) override {
    if (find_message(type_url) != nullptr) return known_->ResolveMessageType(type_url, type);
    type->set_name(std::string(api_name(type_url)));
    return {};
  }

  protobuf::util::Status ResolveEnumType(const std::string& type_url,
                                         protobuf::Enum* type) override {
    return known_->ResolveEnumType(type_url, type);
  }

 private:
  std::unique_ptr<protobuf::util::TypeResolver> known_ = make_type_resolver();
};

void remove_redacted(Json& value) {
  if (value.is_object()) {
    for (auto member = value.begin(); member != value.end();) {
      if (*member == std::string(kRedacted)) {
        member = value.erase(member);
      } else {
        remove_redacted(*member);
        ++member;
      }
    }
  } else if (value.is_array()) {
    for (Json& element : value)
      remove_redacted(element);
  }
}

std::optional<std::string> to_bytes(protobuf::util::TypeResolver& resolver,
                                    absl::string_view type_url,
                                    const Json& fields) {
  const std::string text = fields.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string bytes;
  const auto status =
      protobuf::util::JsonToBinaryString(&resolver, std::string(type_url), text, &bytes);
  if (!status.ok()) return std::nullopt;
  return bytes;
}

}  // namespace

ResourceRedactor::ResourceRedactor() : resolver_(std::make_unique<ForgivingResolver>()) {}

Json ResourceRedactor::json(absl::string_view type_url, const std::string& bytes) const {
  Json out{{"@type", std::string(type_url)}};
  protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = protobuf::util::BinaryToJsonString(
      resolver_.get(), std::string(type_url), bytes, &text, options);
  Json fields = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!status.ok() || !fields.is_object()) {
    out["undecodable"] = absl::StrCat(bytes.size(), " bytes: ", status.ToString());
    return out;
  }
  redact(fields);
  out.update(fields);
  return out;
}

std::optional<std::string> ResourceRedactor::bytes(absl::string_view type_url,
                                                   const std::string& bytes) const {
  Json shown = json(type_url, bytes);
  if (shown.contains("undecodable")) return std::nullopt;
  shown.erase("@type");
  if (auto with_marks = to_bytes(*resolver_, type_url, shown)) return with_marks;
  // The JSON is no valid message: it has the text kRedacted in a field that holds no text, such as
  // a StringMatcher for the value of a header. So all secrets are removed.
  remove_redacted(shown);
  return to_bytes(*resolver_, type_url, shown);
}

}  // namespace signalbox::xds
