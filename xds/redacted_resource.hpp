// SPDX-License-Identifier: Apache-2.0
//
// ResourceRedactor — the part of a resource that may be shown.
//
//   ResourceState::bytes ─▶ [ResourceRedactor] ─┬─ json() ──▶ dump_json
//                                               └─ bytes() ─▶ client_status (CSDS)
//
// Both forms show only the fields that signalbox's own messages have. An Any of an unknown type
// keeps only its type. Possible secrets are replaced (redaction.hpp).

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <google/protobuf/util/type_resolver.h>
#include <nlohmann/json.hpp>

namespace signalbox::xds {

class ResourceRedactor {
 public:
  ResourceRedactor();

  /// The JSON of the resource, as in an Any: `@type` and the fields. If the bytes cannot be
  /// decoded, a text `undecodable` with the reason replaces the fields.
  nlohmann::ordered_json json(absl::string_view type_url, const std::string& bytes) const;

  /// The serialised message that json() describes. When a secret of the message is no text, its
  /// field cannot hold kRedacted, and all secrets of the message are left out. nullopt: the bytes
  /// cannot be decoded.
  std::optional<std::string> bytes(absl::string_view type_url, const std::string& bytes) const;

 private:
  const std::unique_ptr<::google::protobuf::util::TypeResolver> resolver_;
};

}  // namespace signalbox::xds
