// SPDX-License-Identifier: Apache-2.0
#include "xds/utf8.hpp"

#include <climits>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/common.h>

#include "messages/wire_type.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using protobuf::FieldDescriptor;

// Whether the byte is part of a multi-byte character, but not its first byte.
bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

struct Value {
  int field = 0;
  /// The bytes of a length-delimited value; nullopt for other values.
  std::optional<absl::string_view> content;
};

// The next value of a message; nullopt at the end of the message, or at malformed bytes.
std::optional<Value> next_value(absl::string_view bytes, protobuf::io::CodedInputStream& stream) {
  const std::uint32_t tag = stream.ReadTag();
  Value value{static_cast<int>(tag >> 3U), std::nullopt};
  std::uint64_t number = 0;
  switch (tag & 7U) {
    case wire_type::kVarint:
      if (tag == 0 || !stream.ReadVarint64(&number)) return std::nullopt;
      return value;
    case wire_type::kFixed64:
      if (!stream.Skip(8)) return std::nullopt;
      return value;
    case wire_type::kFixed32:
      if (!stream.Skip(4)) return std::nullopt;
      return value;
    case wire_type::kLengthDelimited: {
      if (!stream.ReadVarint64(&number)) return std::nullopt;
      const auto start = static_cast<std::size_t>(stream.CurrentPosition());
      if (number > bytes.size() - start) return std::nullopt;
      value.content = bytes.substr(start, number);
      if (!stream.Skip(static_cast<int>(number))) return std::nullopt;
      return value;
    }
    default:
      return std::nullopt;
  }
}

std::optional<BadText> find(absl::string_view bytes, const protobuf::Descriptor& type, int depth) {
  if (depth == kMaxMessageDepth) return std::nullopt;
  protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                        static_cast<int>(bytes.size()));
  // How often each field has occurred so far. Keys: field numbers.
  std::map<int, std::size_t> seen;
  while (const auto value = next_value(bytes, stream)) {
    const FieldDescriptor* field = type.FindFieldByNumber(value->field);
    if (field == nullptr || !value->content.has_value()) continue;
    const std::size_t index = seen[value->field]++;
    const auto name = [&] {
      return field->is_repeated() ? absl::StrCat(field->name(), "[", index, "]") : field->name();
    };
    if (field->type() == FieldDescriptor::TYPE_STRING && !is_utf8(*value->content))
      return BadText{name(), *value->content};
    if (field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    if (auto bad = find(*value->content, *field->message_type(), depth + 1))
      return BadText{absl::StrCat(name(), ".", bad->field), bad->text};
  }
  return std::nullopt;
}

}  // namespace

bool is_utf8(absl::string_view text) {
  return text.size() <= INT_MAX &&
         protobuf::internal::IsStructurallyValidUTF8(text.data(), static_cast<int>(text.size()));
}

std::string as_utf8(absl::string_view text) {
  return is_utf8(text) ? std::string(text) : absl::CEscape(text);
}

absl::string_view utf8_prefix(absl::string_view text, std::size_t size) {
  for (int i = 0; i < 3 && size < text.size() && size > 0 && is_continuation(text[size]); ++i)
    --size;
  return text.substr(0, size);
}

std::optional<BadText> find_bad_text(absl::string_view bytes, const protobuf::Descriptor& type) {
  if (bytes.size() > INT_MAX) return std::nullopt;
  return find(bytes, type, 0);
}

}  // namespace signalbox::xds
