// SPDX-License-Identifier: Apache-2.0
//
// Extension — a typed configuration: the name of its type, and its message or structure.
//
//   Any ─▶ [read_extension] ─▶ registry row of that type ─▶ [decode] ─▶ message
//
// An Any holds either a message of the type itself or a TypedStruct (xds or udpa), which names the
// type and gives its fields as a JSON structure. Both read the same (A39): a structure is turned
// into the message by the rules of protobuf's JSON, fields that we do not have left aside.
//
// Of a type that the user registered, a parser of his own makes something.
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
  std::string type;  ///< As the API spells it, without the type URL's prefix.
  std::optional<::google::protobuf::Struct> structure;
  absl::string_view bytes;  ///< Of the Any, which must outlive this; without a structure.
};

/// `field` is the Any. nullopt: an error was added.
std::optional<Extension> read_extension(const ::google::protobuf::Any& any, const Field& field);

/// False: an error was added at `field`, the Any's value.
[[nodiscard]] bool decode(const Extension& extension,
                          ::google::protobuf::Message& message,
                          const Field& field);

/// The parser of an extension of the user's own refused it: the error has its words, at most 1000
/// bytes of them.
void add_refused(const Extension& extension, const absl::Status& why, const Field& field);

/// As JSON: equal structures have equal texts.
std::string json_text(const ::google::protobuf::Struct& structure);
std::string json_text(const ::google::protobuf::Value& value);

}  // namespace signalbox::xds
