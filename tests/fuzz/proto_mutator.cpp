// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/proto_mutator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/fuzz/fuzz_target.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fuzz {
namespace {

namespace protobuf = ::google::protobuf;
using protobuf::Any;
using protobuf::FieldDescriptor;
using protobuf::Message;

constexpr int kMaxDepth = 24;

constexpr std::int64_t kNumbers[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     99,
                                     100,
                                     101,
                                     1000,
                                     9999,
                                     10'000,
                                     65'535,
                                     65'536,
                                     999'999,
                                     1000'000,
                                     1'000'001,
                                     8'388'608,
                                     8'388'609,
                                     500'000'000,
                                     999'999'999,
                                     1'000'000'000,
                                     -1,
                                     -2,
                                     2147483647,
                                     2147483648,
                                     4294967295,
                                     315'576'000'000,
                                     315'576'000'001,
                                     -2147483648,
                                     std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()};

constexpr const char* kTexts[] = {"",
                                  "*",
                                  "**",
                                  "*.a",
                                  "a.*",
                                  "A",
                                  "a",
                                  "b",
                                  "/",
                                  "//",
                                  "%",
                                  "%s",
                                  ".",
                                  ".*",
                                  "(",
                                  "[a-",
                                  "(a*)*",
                                  "a{1000}",
                                  "(((a{99}){99}){99})",
                                  "\\C",
                                  "0",
                                  "-1",
                                  "h:80",
                                  "10.0.0.1",
                                  "10.0.0.256",
                                  "::1",
                                  "::",
                                  "fe80::1%lo",
                                  "1.2.3",
                                  "unavailable,internal",
                                  "cancelled",
                                  "content-type",
                                  "x-bin",
                                  ":path",
                                  ":authority",
                                  "io.grpc.channel_id",
                                  "envoy.lb",
                                  "hash_key",
                                  "named_metrics.*",
                                  "named_metrics.",
                                  "cpu_utilization",
                                  "application_utilization",
                                  "envoy.http11_proxy_transport_socket.proxy_address",
                                  "type.googleapis.com/x.Y",
                                  "type.googleapis.com/",
                                  "/x.Y",
                                  "xdstp://a/envoy.config.listener.v3.Listener/s?b=1",
                                  "xdstp:///",
                                  "\xc3\xa4\xe2\x82\xac",
                                  "\xf0\x9f\x98\x80",
                                  "a\nb\"c\\",
                                  "; Path=/",
                                  "\x7f",
                                  "session"};

const Message& prototype_of(const protobuf::Descriptor& type) {
  return *protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
}

// The message that an Any holds; null: its type is unknown or its bytes are wrong.
std::unique_ptr<Message> unpacked(const Any& any) {
  const protobuf::Descriptor* type = xds::find_message(any.type_url());
  if (type == nullptr) return nullptr;
  std::unique_ptr<Message> message(prototype_of(*type).New());
  return message->ParseFromString(any.value()) ? std::move(message) : nullptr;
}

std::vector<Message*> messages_in(Message& message) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  std::vector<Message*> found;
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      found.push_back(reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      found.push_back(reflection.MutableRepeatedMessage(&message, field, i));
  }
  return found;
}

}  // namespace

// --- donors -----------------------------------------------------------------

void Donors::add(const Message& message) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  if (const auto* any = protobuf::DynamicCastToGenerated<Any>(&message)) {
    type_urls_.push_back(any->type_url());
    if (const auto inside = unpacked(*any)) add(*inside);
  }
  for (const Message* below : messages_in(*copy))
    add(*below);
  messages_[message.GetDescriptor()].push_back(std::move(copy));
}

const Message* Donors::find(const protobuf::Descriptor& type, Chance& chance) const {
  const auto found = messages_.find(&type);
  return found == messages_.end() ? nullptr : chance.pick(found->second).get();
}

// --- where ------------------------------------------------------------------

void ProtoMutator::mutate(Message& message) {
  ++depth_;
  if (auto* any = protobuf::DynamicCastToGenerated<Any>(&message)) {
    mutate_any(*any);
  } else {
    const auto below = messages_in(message);
    const auto& type = *message.GetDescriptor();
    if (!below.empty() && depth_ < kMaxDepth && !chance_.one_in(4)) {
      mutate(*chance_.pick(below));
    } else if (type.field_count() > 0) {
      const auto place =
          static_cast<int>(chance_.below(static_cast<std::size_t>(type.field_count())));
      mutate_field(message, *type.field(place));
    }
  }
  --depth_;
}

void ProtoMutator::mutate_any(Any& any) {
  if (!chance_.one_in(4) && mutate_inside(any)) return;
  switch (chance_.below(5)) {
    case 0:
      if (const Message* donor = donors_.find(*any.GetDescriptor(), chance_)) any.CopyFrom(*donor);
      return;
    case 1:
      any.set_type_url(donors_.type_url(chance_));
      return;
    case 2: {
      // Wraps the Any in a Resource message. A wrapped Any may be wrapped again.
      Any wrapper;
      const Any before = any;
      any.set_type_url("type.googleapis.com/envoy.service.discovery.v3.Resource");
      any.clear_value();
      if (auto resource = unpacked(any)) {
        const auto* field = resource->GetDescriptor()->FindFieldByName("resource");
        resource->GetReflection()->MutableMessage(resource.get(), field)->CopyFrom(before);
        any.set_value(resource->SerializeAsString());
      }
      return;
    }
    case 3:
      any.set_type_url(text(any.type_url(), false));
      return;
    default:
      any.set_value(text(any.value(), true));
  }
}

bool ProtoMutator::mutate_inside(Any& any) {
  if (depth_ >= kMaxDepth) return false;
  const auto message = unpacked(any);
  if (message == nullptr) return false;
  mutate(*message);
  any.set_value(message->SerializeAsString());
  return true;
}

// --- how --------------------------------------------------------------------

void ProtoMutator::mutate_field(Message& message, const Field& field) {
  if (field.is_repeated())
    mutate_list(message, field);
  else if (chance_.one_in(5))
    message.GetReflection()->ClearField(&message, &field);
  else
    set(message, field);
}

void ProtoMutator::mutate_list(Message& message, const Field& field) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  const auto any_place = [&] {
    return static_cast<int>(chance_.below(static_cast<std::size_t>(size)));
  };
  switch (size == 0 ? 0 : chance_.below(5)) {
    case 1:
      reflection.SwapElements(&message, &field, any_place(), size - 1);
      reflection.RemoveLast(&message, &field);
      return;
    case 2:
      reflection.SwapElements(&message, &field, any_place(), any_place());
      return;
    case 3:
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map()) {
        // Copies of one element make duplicates, and lists beyond limits.
        const int copies = chance_.one_in(8) ? 40 : 1;
        const int place = any_place();
        for (int i = 0; i < copies; ++i) {
          Message* copy = reflection.AddMessage(&message, &field);
          copy->CopyFrom(reflection.GetRepeatedMessage(message, &field, place));
        }
        return;
      }
      [[fallthrough]];
    default:
      add(message, field);
  }
}

void ProtoMutator::set(Message& message, const Field& field) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field, static_cast<std::int32_t>(number()));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, number());
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(number()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, static_cast<std::uint64_t>(number()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, real());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(&message, &field, static_cast<float>(real()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, !reflection.GetBool(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, &field, enumerator(field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(
          &message,
          &field,
          text(reflection.GetString(message, &field), field.type() == FieldDescriptor::TYPE_BYTES));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return grow(*reflection.MutableMessage(&message, &field));
  }
}

void ProtoMutator::add(Message& message, const Field& field) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return grow(*reflection.AddMessage(&message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.AddString(&message, &field, text("", false));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.AddEnumValue(&message, &field, enumerator(field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.AddUInt32(&message, &field, static_cast<std::uint32_t>(number()));
    default:
      return;  // No message of signalbox has a list of this type.
  }
}

// Replaces a sub-message by a copy of a donor, or makes one random change in it. Below kMaxDepth it
// does nothing.
void ProtoMutator::grow(Message& message) {
  if (depth_ >= kMaxDepth) return;
  const Message* donor =
      chance_.one_in(3) ? nullptr : donors_.find(*message.GetDescriptor(), chance_);
  if (donor != nullptr)
    message.CopyFrom(*donor);
  else
    mutate(message);
}

// --- values -----------------------------------------------------------------

std::int64_t ProtoMutator::number() {
  return chance_.one_in(8) ? static_cast<std::int64_t>(chance_.next()) : chance_.pick(kNumbers);
}

double ProtoMutator::real() {
  constexpr double kReals[] = {0, -0.0, 0.5, 1, -1, 100, 1e300, 4294967296.0, HUGE_VAL, NAN};
  return chance_.pick(kReals);
}

int ProtoMutator::enumerator(const Field& field) {
  if (chance_.one_in(6)) return static_cast<int>(number());
  const auto count = static_cast<std::size_t>(field.enum_type()->value_count());
  return field.enum_type()->value(static_cast<int>(chance_.below(count)))->number();
}

std::string ProtoMutator::text(std::string before, bool bytes) {
  if (chance_.one_in(16)) return std::string(1 + chance_.below(1100), 'a');
  if (bytes || chance_.one_in(8)) {
    const std::size_t size = before.size();
    before.resize(size + 16);
    before.resize(
        LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(before.data()), size, before.size()));
    return before;
  }
  return chance_.one_in(4) ? before + chance_.pick(kTexts) : chance_.pick(kTexts);
}

// --- the body of LLVMFuzzerCustomMutator --------------------------------------

std::size_t mutate_bytes(const Message& prototype,
                         const Donors& donors,
                         std::uint8_t* data,
                         std::size_t size,
                         std::size_t max_size,
                         unsigned int seed) {
  ProtoMutator mutator(donors, seed);
  Chance& chance = mutator.chance();
  std::unique_ptr<Message> message(prototype.New());
  const bool is_message = message->ParseFromArray(data, static_cast<int>(size));
  if (size > 0 && chance.one_in(is_message ? 8 : 2)) return LLVMFuzzerMutate(data, size, max_size);

  if (size == 0 || chance.one_in(32)) {
    if (const Message* donor = donors.find(*prototype.GetDescriptor(), chance))
      message->CopyFrom(*donor);
  }
  for (std::size_t changes = 1 + chance.below(3); changes > 0; --changes)
    mutator.mutate(*message);
  const std::string bytes = message->SerializeAsString();
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

}  // namespace signalbox::fuzz
