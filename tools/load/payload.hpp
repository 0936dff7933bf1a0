// SPDX-License-Identifier: Apache-2.0
//
// payload — the bytes of the request, from JSON and the method's own types.
//
//   protoc --include_imports --descriptor_set_out=FILE, or server reflection ─▶ descriptors ─┐
//   '{"item": "book"}' ────────────────────────────────────────┴▶ [payload_of_json] ─▶ Payload

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::tools {

/// Returns "/orders.v1.Orders/Place" for each of the forms "orders.v1.Orders/Place",
/// "/orders.v1.Orders/Place" and "orders.v1.Orders.Place".
absl::StatusOr<std::string> method_path_of(absl::string_view text);

/// The request of every call of a load.
struct Payload {
  std::string bytes;
  bool is_streaming = false;  ///< The server answers with a stream of messages.
};

/// `protoset`: the bytes of a FileDescriptorSet. NOT_FOUND: it lacks the service or the method.
/// INVALID_ARGUMENT: `protoset` is no such set, the client of the method streams, or the JSON does
/// not fit the request's type. An error of the JSON is protobuf's, with the position, on
/// one line.
absl::StatusOr<Payload> payload_of_json(const std::string& protoset,
                                        const std::string& method_path,
                                        const std::string& json);

}  // namespace signalbox::tools
