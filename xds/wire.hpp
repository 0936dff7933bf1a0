// SPDX-License-Identifier: Apache-2.0
//
// wire — reads serialised messages without decoding them: it builds no objects for their content.
//
//   bytes ─▶ [WireReader] ─▶ one value after the other, as views into the bytes
//   bytes ─▶ [weigh]      ─▶ an estimate of the decoded message's memory
//
// protobuf builds an object for every entry of a message, and an empty entry is two bytes long. One
// byte on the wire can therefore cost a hundred bytes of memory. For that reason the parser
// estimates the memory of a message before it decodes the message. The messages around resources
// (responses, wrappers) are read as views.
//
// lb/session/envoy_cookie has a reader of its own, because xds and lb do not include each other.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include <google/protobuf/descriptor.h>

namespace signalbox::xds {

/// protobuf's own default depth limit.
inline constexpr int kMaxMessageDepth = 100;

/// One value of a message.
struct WireValue {
  int field = 0;
  /// Set for length-delimited values: a string, bytes, a message, packed numbers.
  std::optional<absl::string_view> content;
  /// The value is a group or is inside one. The xDS API has no groups.
  bool in_group = false;
};

/// Reads the values of one message, in their order.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : rest_(bytes) {}

  /// The next value; nullopt at the end of the bytes, or at malformed bytes.
  std::optional<WireValue> next();

  /// Whether all bytes are well-formed. Valid once next() has returned nullopt.
  bool is_whole() const { return rest_.empty() && !broken_ && group_depth_ == 0; }

 private:
  bool read_varint(std::uint64_t& value);
  bool skip(std::size_t size);
  std::optional<WireValue> stop();

  absl::string_view rest_;
  bool broken_ = false;
  int group_depth_ = 0;
};

/// Estimates the memory, in bytes, that protobuf allocates to decode these bytes as a message of
/// the type. The content of an Any is counted as bytes. Stops as soon as the estimate exceeds
/// `most`.
std::size_t weigh(absl::string_view bytes,
                  const ::google::protobuf::Descriptor& type,
                  std::size_t most);

}  // namespace signalbox::xds
