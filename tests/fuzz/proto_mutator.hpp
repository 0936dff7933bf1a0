// SPDX-License-Identifier: Apache-2.0
//
// ProtoMutator — changes fields of protobuf messages instead of bytes.
//
//   bytes ─▶ message ─▶ [ProtoMutator]: one to three changes, at any depth ─▶ bytes
//                           ▲
//                        donors: every message that occurs in the resource seeds, by its type
//
// It descends at random, also into the messages that Anys hold, and sets, clears, adds, removes,
// copies or swaps a field. Most new values are those at which code branches: limits, meaningful
// names, numbers around zero and around the ends of their range. A new sub-message is often a copy
// of a donor, so that deep structures appear whole. An input is mutated as bytes in one case of
// eight, in half of the cases if it does not parse, and if its changed message would be too long.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>

#include "tests/fuzz/chance.hpp"

namespace signalbox::fuzz {

/// Messages to copy from.
class Donors {
 public:
  using Message = ::google::protobuf::Message;

  /// Adds the message and all messages below it.
  void add(const Message& message);

  /// A random added message of that type; null: none was added.
  const Message* find(const ::google::protobuf::Descriptor& type, Chance& chance) const;

  /// A random type URL from the Anys in all added messages. Precondition: an Any was added.
  const std::string& type_url(Chance& chance) const { return chance.pick(type_urls_); }

 private:
  std::map<const ::google::protobuf::Descriptor*, std::vector<std::unique_ptr<Message>>> messages_;
  std::vector<std::string> type_urls_;
};

class ProtoMutator {
 public:
  using Message = ::google::protobuf::Message;

  /// `donors` must outlive the mutator.
  ProtoMutator(const Donors& donors, std::uint64_t seed) : donors_(donors), chance_(seed) {}

  Chance& chance() { return chance_; }

  /// Makes one change, or none where the chosen field allows none.
  void mutate(Message& message);

 private:
  using Field = ::google::protobuf::FieldDescriptor;

  void mutate_any(::google::protobuf::Any& any);
  bool mutate_inside(::google::protobuf::Any& any);
  void mutate_field(Message& message, const Field& field);
  void mutate_list(Message& message, const Field& field);
  void set(Message& message, const Field& field);
  void add(Message& message, const Field& field);
  void grow(Message& message);

  std::int64_t number();
  double real();
  int enumerator(const Field& field);
  std::string text(std::string before, bool bytes);

  const Donors& donors_;
  Chance chance_;
  int depth_ = 0;
};

/// The body of an LLVMFuzzerCustomMutator: takes the bytes for a message of `prototype`'s type.
std::size_t mutate_bytes(const ::google::protobuf::Message& prototype,
                         const Donors& donors,
                         std::uint8_t* data,
                         std::size_t size,
                         std::size_t max_size,
                         unsigned int seed);

}  // namespace signalbox::fuzz
