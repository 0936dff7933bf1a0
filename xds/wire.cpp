// SPDX-License-Identifier: Apache-2.0
#include "xds/wire.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include "messages/wire_type.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using protobuf::FieldDescriptor;

constexpr std::uint64_t kMaxTag = 0xFFFFFFFFU;

// Estimated overheads in bytes: an allocation in addition to its size, a list entry in addition to
// its object, an unknown field, and a number in a list.
constexpr std::size_t kAllocation = 16;
constexpr std::size_t kListEntry = 16;
constexpr std::size_t kUnknownValue = 32;
constexpr std::size_t kListedNumber = 16;

std::size_t size_of_text(std::size_t length) {
  constexpr std::size_t kInPlace = 15;
  const std::size_t object = sizeof(std::string) + kAllocation;
  return length <= kInPlace ? object : object + length + kAllocation;
}

// The facts of a message type that weigh() needs.
struct Shape {
  enum class Kind : std::uint8_t { kUnknown, kNumber, kNumbers, kText, kMessage };

  struct Field {
    Kind kind = Kind::kUnknown;
    std::uint32_t message = 0;  ///< For kMessage: the place of the message's Shape in Shapes.
  };

  std::size_t size = 0;  ///< The size of an empty object of the type, allocation included.
  std::vector<Field> fields;
};

// The size of an empty object of the message type, in bytes.
std::size_t size_of(const protobuf::Descriptor& type) {
  constexpr std::size_t kMapNode = 128;
  if (type.options().map_entry()) return kMapNode;
  return protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->SpaceUsedLong();
}

Shape::Kind kind_of(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
      return Shape::Kind::kText;
    case FieldDescriptor::TYPE_MESSAGE:
      return Shape::Kind::kMessage;
    default:
      return field.is_repeated() ? Shape::Kind::kNumbers : Shape::Kind::kNumber;
  }
}

// The shapes of a type and of all types that it contains. The type's own shape is at place 0.
class Shapes {
 public:
  explicit Shapes(const protobuf::Descriptor& type) { place_of(type); }

  const Shape& at(std::uint32_t place) const { return shapes_[place]; }

 private:
  std::uint32_t place_of(const protobuf::Descriptor& type) {
    const auto [known, is_new] = places_.emplace(&type, shapes_.size());
    const std::uint32_t place = known->second;
    if (!is_new) return place;
    shapes_.emplace_back();
    Shape shape;
    shape.size = size_of(type) + kAllocation;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const auto number = static_cast<std::size_t>(field.number());
      if (number >= shape.fields.size()) shape.fields.resize(number + 1);
      shape.fields[number].kind = kind_of(field);
      if (field.type() == FieldDescriptor::TYPE_MESSAGE)
        shape.fields[number].message = place_of(*field.message_type());
    }
    shapes_[place] = std::move(shape);
    return place;
  }

  std::map<const protobuf::Descriptor*, std::uint32_t> places_;
  std::vector<Shape> shapes_;
};

class Weighing {
 public:
  Weighing(const Shapes& shapes, std::size_t most) : shapes_(shapes), most_(most) {}

  void add(absl::string_view bytes, std::uint32_t place, int depth) {
    const Shape& shape = shapes_.at(place);
    weight_ += shape.size;
    if (depth == kMaxMessageDepth) return;
    WireReader reader(bytes);
    while (weight_ <= most_) {
      const auto value = reader.next();
      if (!value) return;
      add_value(*value, shape, depth);
    }
  }

  std::size_t weight() const { return weight_; }

 private:
  void add_unknown(const WireValue& value) {
    weight_ += kUnknownValue + (value.content ? size_of_text(value.content->size()) : 0);
  }

  void add_value(const WireValue& value, const Shape& shape, int depth) {
    const auto number = static_cast<std::size_t>(value.field);
    const bool is_known = !value.in_group && number < shape.fields.size();
    const Shape::Field field = is_known ? shape.fields[number] : Shape::Field{};
    const std::size_t length = value.content ? value.content->size() : 0;
    switch (field.kind) {
      case Shape::Kind::kUnknown:
        add_unknown(value);
        return;
      case Shape::Kind::kNumber:
        // protobuf keeps a length-delimited value for a number field as an unknown field.
        if (value.content) add_unknown(value);
        return;
      case Shape::Kind::kNumbers:
        weight_ += value.content ? length * kListedNumber : kListedNumber;
        return;
      case Shape::Kind::kText:
        weight_ += kListEntry + size_of_text(length);
        return;
      case Shape::Kind::kMessage:
        if (!value.content) return add_unknown(value);
        weight_ += kListEntry;
        add(*value.content, field.message, depth + 1);
        return;
    }
  }

  const Shapes& shapes_;
  std::size_t most_;
  std::size_t weight_ = 0;
};

}  // namespace

bool WireReader::read_varint(std::uint64_t& value) {
  constexpr int kMaxBits = 64;
  value = 0;
  std::size_t at = 0;
  for (int shift = 0; shift < kMaxBits && at < rest_.size(); shift += 7, ++at) {
    const auto byte = static_cast<unsigned char>(rest_[at]);
    value |= std::uint64_t{byte & 0x7FU} << static_cast<unsigned>(shift);
    if ((byte & 0x80U) != 0) continue;
    rest_.remove_prefix(at + 1);
    return true;
  }
  return false;
}

bool WireReader::skip(std::size_t size) {
  if (size > rest_.size()) return false;
  rest_.remove_prefix(size);
  return true;
}

std::optional<WireValue> WireReader::stop() {
  broken_ = true;
  return std::nullopt;
}

std::optional<WireValue> WireReader::next() {
  while (!rest_.empty() && !broken_) {
    std::uint64_t tag = 0;
    std::uint64_t number = 0;
    if (!read_varint(tag) || tag > kMaxTag || tag >> 3U == 0) return stop();
    WireValue value{static_cast<int>(tag >> 3U), std::nullopt, group_depth_ > 0};
    switch (tag & 7U) {
      case wire_type::kVarint:
        if (!read_varint(number)) return stop();
        return value;
      case wire_type::kFixed64:
        if (!skip(sizeof(std::uint64_t))) return stop();
        return value;
      case wire_type::kFixed32:
        if (!skip(sizeof(std::uint32_t))) return stop();
        return value;
      case wire_type::kLengthDelimited:
        if (!read_varint(number) || number > rest_.size()) return stop();
        value.content = rest_.substr(0, number);
        rest_.remove_prefix(number);
        return value;
      case wire_type::kGroupStart:
        if (++group_depth_ > kMaxMessageDepth) return stop();
        value.in_group = true;
        return value;
      case wire_type::kGroupEnd:
        if (--group_depth_ < 0) return stop();
        continue;
      default:
        return stop();
    }
  }
  return std::nullopt;
}

// Shapes are cached per thread. Few types are weighed, so the cache stays small.
std::size_t weigh(absl::string_view bytes, const protobuf::Descriptor& type, std::size_t most) {
  thread_local std::map<const protobuf::Descriptor*, std::unique_ptr<const Shapes>> known;
  auto& shapes = known[&type];
  if (shapes == nullptr) shapes = std::make_unique<const Shapes>(type);
  Weighing weighing(*shapes, most);
  weighing.add(bytes, 0, 0);
  return weighing.weight();
}

}  // namespace signalbox::xds
