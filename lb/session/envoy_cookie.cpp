// SPDX-License-Identifier: Apache-2.0
#include "lb/session/envoy_cookie.hpp"

#include <array>
#include <cstddef>

#include "lb/wire_writer.hpp"

namespace signalbox::lb {
namespace {

// Field numbers.
constexpr std::uint32_t kAddress = 1;
constexpr std::uint32_t kExpires = 2;
constexpr std::uint32_t kCluster = 3;

constexpr unsigned kTypeBits = 3;
constexpr unsigned kVarintBits = 7;  // In each byte; the eighth bit says that another byte follows.
constexpr unsigned char kMoreFollows = 1U << kVarintBits;

// The longest tag, size and number (in bytes) and the deepest group that protobuf's readers accept.
constexpr unsigned kLongestTag = 5;
constexpr unsigned kLongestSize = 5;
constexpr unsigned kLongestVarint = 10;
constexpr std::size_t kDeepestGroup = 100;

/// The part of a message that has not been read yet. It repeats the reader of xds/wire, because lb
/// and xds do not include each other, and messages, which both include, is for values alone.
class Bytes {
 public:
  explicit Bytes(absl::string_view text) : rest_(text) {}

  bool is_empty() const { return rest_.empty(); }

  /// nullopt: the number is cut short, or is longer than `most_bytes`.
  std::optional<std::uint64_t> take_varint(unsigned most_bytes) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < most_bytes * kVarintBits && !rest_.empty();
         shift += kVarintBits) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte % kMoreFollows) << shift;
      if (byte < kMoreFollows) return number;
    }
    return std::nullopt;
  }

  /// Takes the next `count` bytes. nullopt: fewer bytes are left.
  std::optional<absl::string_view> take(std::uint64_t count) {
    if (count > rest_.size()) return std::nullopt;
    const absl::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  /// Takes the value of a field that is not a group. A varint yields an empty text. nullopt: the
  /// value is malformed, or the type is unknown.
  std::optional<absl::string_view> take_value(unsigned type) {
    switch (type) {
      case wire_type::kVarint:
        return take_varint(kLongestVarint) ? std::optional(absl::string_view()) : std::nullopt;
      case wire_type::kFixed64:
        return take(8);
      case wire_type::kLengthDelimited: {
        const auto size = take_varint(kLongestSize);
        return size ? take(*size) : std::nullopt;
      }
      case wire_type::kFixed32:
        return take(4);
      default:
        return std::nullopt;
    }
  }

 private:
  absl::string_view rest_;
};

/// The protobuf groups that are open around a field. Cookies have no groups, but protobuf's readers
/// skip them, so this reader does too.
class Groups {
 public:
  bool is_outside() const { return depth_ == 0; }

  bool begin(std::uint32_t number) {
    if (depth_ == open_.size()) return false;
    open_[depth_++] = number;
    return true;
  }

  bool end(std::uint32_t number) {
    if (depth_ == 0) return false;
    --depth_;
    return open_[depth_] == number;
  }

 private:
  std::array<std::uint32_t, kDeepestGroup> open_{};  // Only the first depth_ are set.
  std::size_t depth_ = 0;
};

}  // namespace

std::optional<EnvoyCookie> read_envoy_cookie(absl::string_view text) {
  EnvoyCookie cookie;
  Bytes bytes(text);
  Groups groups;
  std::array<bool, kCluster + 1> is_known{};
  while (!bytes.is_empty()) {
    const auto varint = bytes.take_varint(kLongestTag);
    if (!varint) return std::nullopt;
    const auto tag = static_cast<std::uint32_t>(*varint);  // protobuf ignores further bits.
    const std::uint32_t number = tag >> kTypeBits;
    const unsigned type = tag & ((1U << kTypeBits) - 1);
    if (number == 0) return std::nullopt;
    if (type == wire_type::kGroupStart || type == wire_type::kGroupEnd) {
      cookie.is_plain = false;
      if (!(type == wire_type::kGroupStart ? groups.begin(number) : groups.end(number)))
        return std::nullopt;
      continue;
    }
    const auto value = bytes.take_value(type);
    if (!value) return std::nullopt;
    if (!groups.is_outside()) continue;
    const bool is_ours =
        number <= kCluster &&
        type == (number == kExpires ? wire_type::kVarint : wire_type::kLengthDelimited);
    if (!is_ours || is_known[number]) cookie.is_plain = false;
    if (!is_ours) continue;
    is_known[number] = true;
    if (number == kAddress) cookie.address = *value;
    if (number == kCluster) cookie.cluster = *value;
  }
  if (!groups.is_outside()) return std::nullopt;
  return cookie;
}

void write_envoy_cookie(absl::string_view address,
                        absl::string_view cluster,
                        std::uint64_t expires,
                        std::string& text) {
  text.clear();
  append_text(kAddress, address, text);
  if (expires != 0) append_number(kExpires, expires, text);
  if (!cluster.empty()) append_text(kCluster, cluster, text);
}

}  // namespace signalbox::lb
