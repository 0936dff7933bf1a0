// SPDX-License-Identifier: Apache-2.0
//
// Extension — a typed configuration: the name of its type, and its message or JSON structure.
//
//   Any ─▶ [read_extension] ─▶ registry row of that type ─▶ [decode] ─▶ message
//
// An Any holds either a message of the type itself or a TypedStruct (xds or udpa). A TypedStruct
// names the type and has its fields as a JSON structure. decode() treats both alike (A39): it turns
// a structure into the message by protobuf's JSON rules, and ignores unknown fields.
//
// Types that the user registered are read by the user's parsers, without decode().
//
// Source: gRFC A39 (filters), A52 (custom LB policies).

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>

#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

struct Extension {
  /// The full name of the type as the API spells it, such as
  /// "envoy.extensions.filters.http.router.v3.Router".
  std::string type;
  std::optional<::google::protobuf::Struct> structure;
  /// A view into the Any, which must outlive the view. Empty if there is a structure.
  absl::string_view bytes;
};

/// Finds the type and the content of an Any. `field` is the Any. nullopt: an error was added.
std::optional<Extension> read_extension(const ::google::protobuf::Any& any, const Field& field);

/// Decodes the extension into `message`. False: an error was added at `field`, the Any's value.
[[nodiscard]] bool decode(const Extension& extension,
                          ::google::protobuf::Message& message,
                          const Field& field);

/// Adds the error with which a user's parser refused the configuration. At most 1000 bytes of the
/// parser's message are kept.
void add_refused(const Extension& extension, const absl::Status& why, const Field& field);

/// JSON text. Equal structures have equal texts.
std::string json_text(const ::google::protobuf::Struct& structure);
std::string json_text(const ::google::protobuf::Value& value);

}  // namespace signalbox::xds
