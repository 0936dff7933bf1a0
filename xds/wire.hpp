// SPDX-License-Identifier: Apache-2.0
//
// Serialised messages, read without being decoded: nothing is built for what they hold.
//
//   bytes ─▶ [WireReader] ─▶ one value after the other, views into the bytes
//   bytes ─▶ [weigh]      ─▶ how much memory the decoded message would take
//
// protobuf builds an object for every entry of a message, and an empty entry is two bytes long:
// one byte can cost a hundred. So the parser weighs bytes before it decodes them, and reads what is
// around resources (responses, wrappers) as views.
//
// lb/session/envoy_cookie has a reader of its own: xds and lb include nothing of each other, and
// messages, which both include, holds no logic.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include <google/protobuf/descriptor.h>

namespace signalbox::xds {

/// One value of a message.
struct WireValue {
  int field = 0;
  /// Of a value that is length-delimited: a string, bytes, a message, packed numbers.
  std::optional<absl::string_view> content;
  /// The value is inside a group, which is nothing that the xDS API has.
  bool in_group = false;
};

/// Reads the values of one message, in their order.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : rest_(bytes) {}

  /// The next value; nothing at the end of the bytes, or where they stop to be a message.
  std::optional<WireValue> next();

  /// Once next() returned nothing: whether the bytes are a message.
  bool is_whole() const { return rest_.empty() && !broken_ && group_depth_ == 0; }

 private:
  bool read_varint(std::uint64_t& value);
  bool skip(std::size_t size);
  std::optional<WireValue> stop();

  absl::string_view rest_;
  bool broken_ = false;
  int group_depth_ = 0;
};

/// An estimate, in bytes, of what protobuf allocates to decode these bytes as a message of the
/// type; what stands inside an Any is counted as bytes. Stops as soon as the estimate is greater
/// than `most`.
std::size_t weigh(absl::string_view bytes,
                  const ::google::protobuf::Descriptor& type,
                  std::size_t most);

}  // namespace signalbox::xds
