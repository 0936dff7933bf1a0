// SPDX-License-Identifier: Apache-2.0
#include "lb/session/envoy_cookie.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using namespace std::string_literals;
using google::protobuf::UnknownField;

std::string written(absl::string_view address, absl::string_view cluster, std::uint64_t expires) {
  std::string text = "what was there";
  write_envoy_cookie(address, cluster, expires, text);
  return text;
}

TEST_CASE("envoy_cookie: is written as protobuf writes it", "[lb][session][A55-45]") {
  CHECK(written("10.0.0.1:80", "", 0) == "\x0a\x0b"s + "10.0.0.1:80");
  CHECK(written("10.0.0.1:80", "orders", 0) == "\x0a\x0b"s + "10.0.0.1:80" + "\x1a\x06" + "orders");
  CHECK(written("10.0.0.1:80", "a", 300) ==
        "\x0a\x0b"s + "10.0.0.1:80" + "\x10\xac\x02" + "\x1a\x01" + "a");
  const std::string long_name(200, 'x');
  CHECK(written("1.1.1.1:1", long_name, 0) ==
        "\x0a\x09"s + "1.1.1.1:1" + "\x1a\xc8\x01" + long_name);
}

// protobuf's reading of the same bytes. Empty knows no field, so it keeps every field as unknown.
struct Oracle {
  explicit Oracle(const std::string& text) {
    google::protobuf::Empty message;
    is_message = message.ParseFromString(text);
    if (!is_message) return;
    const auto& fields = message.GetReflection()->GetUnknownFields(message);
    std::vector<int> seen(4);
    for (int i = 0; i < fields.field_count(); ++i) {
      const UnknownField& field = fields.field(i);
      const bool is_text = field.type() == UnknownField::TYPE_LENGTH_DELIMITED;
      const bool is_ours = field.number() == 2
                               ? field.type() == UnknownField::TYPE_VARINT
                               : (field.number() == 1 || field.number() == 3) && is_text;
      if (!is_ours || seen[static_cast<std::size_t>(field.number())]++ > 0) is_plain = false;
      if (is_ours && field.number() == 1) address = field.length_delimited();
      if (is_ours && field.number() == 3) cluster = field.length_delimited();
    }
  }

  bool is_message = false;
  bool is_plain = true;
  std::string address;
  std::string cluster;
};

void check_reading(const std::string& text) {
  const Oracle oracle(text);
  const auto read = read_envoy_cookie(text);
  RC_ASSERT(read.has_value() == oracle.is_message);
  if (!read) return;
  RC_ASSERT(std::string(read->address) == oracle.address);
  RC_ASSERT(std::string(read->cluster) == oracle.cluster);
  RC_ASSERT(read->is_plain == oracle.is_plain);
}

TEST_CASE("envoy_cookie: reads what protobuf reads, whatever the bytes are",
          "[lb][session][property][A55-45]") {
  // Pieces of protobuf messages: tags of known and of other fields, sizes, ends of groups, and
  // values.
  const std::vector<std::string> pieces = {"\x0a"s,
                                           "\x0a\x03"s
                                           "a:1"s,
                                           "\x10"s,
                                           "\x10\x01"s,
                                           "\x1a"s,
                                           "\x1a\x01"s
                                           "c"s,
                                           "\x0b"s,
                                           "\x0c"s,
                                           "\x08"s,
                                           "\x0d"s,
                                           "\x09"s,
                                           "\x12"s,
                                           "\x18"s,
                                           "\x23\x24"s,
                                           "\x22\x01"s,
                                           "\x00"s,
                                           "\x01"s,
                                           "\x03"s,
                                           "\x04"s,
                                           "\x07"s,
                                           "\x80"s,
                                           "\xff"s,
                                           "\x8a\x00"s,
                                           "1"s,
                                           "0.0.0.1:"s,
                                           "80;orders"s,
                                           "[::1]"s,
                                           "\x85"s,
                                           "\x0f"s,
                                           "\xf8\xff"s};
  CHECK(test::holds("as protobuf", 20'000, [&] {
    const auto chosen =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 30));
    std::string text;
    for (const std::size_t piece : chosen)
      text += pieces[piece];
    check_reading(text);
  }));
  CHECK(test::holds("any bytes", 20'000, [](const std::string& text) { check_reading(text); }));
}

TEST_CASE("envoy_cookie: groups are passed over as deep as protobuf does",
          "[lb][session][limits][A55-45]") {
  for (const std::size_t depth : {std::size_t{1}, std::size_t{99}, std::size_t{100}}) {
    INFO(depth);
    const std::string begins(depth, '\x23');
    const std::string ends(depth, '\x24');
    const std::string text = written("10.0.0.1:80", "", 0) + begins + ends;
    CHECK(Oracle(text).is_message);
    const auto read = read_envoy_cookie(text);
    REQUIRE(read);
    CHECK(read->address == "10.0.0.1:80");
    CHECK_FALSE(read->is_plain);
  }
  const std::string deeper = std::string(101, '\x23') + std::string(101, '\x24');
  CHECK_FALSE(Oracle(deeper).is_message);
  CHECK_FALSE(read_envoy_cookie(deeper));
}

TEST_CASE("envoy_cookie: of each cut of a message nothing is read beyond its end",
          "[lb][session][A55-45]") {
  const std::string whole = written("10.0.0.1:80", "orders", 1'800'000'000);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    const std::string cut = whole.substr(0, size);  // A copy, so that a sanitizer sees its end.
    const auto read = read_envoy_cookie(cut);
    CHECK(read.has_value() == Oracle(cut).is_message);
  }
}

}  // namespace
}  // namespace signalbox::lb
