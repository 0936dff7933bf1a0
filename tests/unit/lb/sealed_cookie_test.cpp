// SPDX-License-Identifier: Apache-2.0
#include "lb/session/sealed_cookie.hpp"

#include <set>

#include "absl/strings/escaping.h"
#include <catch2/catch.hpp>

#include "lb/pick/snapshot_cell.hpp"
#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

SealKey key_of(char letter) {
  SealKey key{};
  key.fill(static_cast<unsigned char>(letter));
  return key;
}

std::string line_of(char letter) {
  return absl::Base64Escape(std::string(32, letter));
}

using Opened = CookieSeal::Opened;

const char kText[] = "10.0.0.1:80;orders";
const char kPurpose[] = "session of xds:///orders";

std::string sealed_by(const CookieSeal& seal, absl::string_view purpose = kPurpose) {
  std::string value;
  REQUIRE(seal.seal(kText, purpose, value));
  return value;
}

bool opens(const CookieSeal& seal, const std::string& value, absl::string_view purpose = kPurpose) {
  std::string text;
  return seal.open(value, purpose, text) != Opened::kNo && text == kText;
}

TEST_CASE("sealed_cookie: opens what it sealed, and so does another with the key",
          "[lb][session][sealed]") {
  const CookieSeal one({key_of('a')});
  const CookieSeal other({key_of('a')});
  const std::string value = sealed_by(one);
  CHECK(opens(one, value));
  CHECK(opens(other, value));
  CHECK_FALSE(opens(CookieSeal({key_of('b')}), value));
  std::string text;
  CHECK(absl::Base64Unescape(value, &text));
  CHECK(text.find("10.0.0.1") == std::string::npos);
  CHECK(text.size() == sizeof(kText) - 1 + CookieSeal::kOverhead);
}

TEST_CASE("sealed_cookie: opens any text for its purpose", "[lb][session][sealed][property]") {
  const CookieSeal seal({key_of('a'), key_of('b')});
  CHECK(test::holds(
      "a sealed cookie", 500, [&seal](const std::string& text, const std::string& purpose) {
        std::string value;
        RC_ASSERT(seal.seal(text, purpose, value));
        std::string opened;
        RC_ASSERT(seal.open(value, purpose, opened) == Opened::kYes);
        RC_ASSERT(opened == text);
        RC_ASSERT(seal.open(value, purpose + "x", opened) == Opened::kNo);
      }));
}

TEST_CASE("sealed_cookie: no two values are the same", "[lb][session][sealed]") {
  const CookieSeal seal({key_of('a')});
  std::set<std::string> values;
  for (int i = 0; i < 1'000; ++i)
    values.insert(sealed_by(seal));
  CHECK(values.size() == 1'000);
}

TEST_CASE("sealed_cookie: appends to what is there", "[lb][session][sealed]") {
  std::string value = "s=";
  const CookieSeal seal({key_of('a')});
  REQUIRE(seal.seal(kText, kPurpose, value));
  CHECK(value.substr(0, 2) == "s=");
  CHECK(opens(seal, value.substr(2)));
}

TEST_CASE("sealed_cookie: any bit that is another, and any end that is missing, is found",
          "[lb][session][sealed]") {
  const CookieSeal seal({key_of('a')});
  std::string bytes;
  REQUIRE(absl::Base64Unescape(sealed_by(seal), &bytes));
  std::string text;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string other = bytes;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit);
    CHECK(seal.open(absl::Base64Escape(other), kPurpose, text) == Opened::kNo);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(seal.open(absl::Base64Escape(bytes.substr(0, size)), kPurpose, text) == Opened::kNo);
  CHECK(seal.open(absl::Base64Escape(bytes + "x"), kPurpose, text) == Opened::kNo);
  CHECK(seal.open("not base64!", kPurpose, text) == Opened::kNo);
}

TEST_CASE("sealed_cookie: a value is of no use for another purpose", "[lb][session][sealed]") {
  const CookieSeal seal({key_of('a')});
  CHECK_FALSE(opens(seal, sealed_by(seal), "session of xds:///users"));
  CHECK(opens(seal, sealed_by(seal, ""), ""));
}

TEST_CASE("sealed_cookie: keys are changed without losing a session", "[lb][session][sealed]") {
  CookieSeal one({key_of('a')});
  CookieSeal other({key_of('a')});
  const auto old_value = sealed_by(one);
  const auto replace = [](CookieSeal& seal, SealKeys keys) {
    const auto old = seal.exchange(std::move(keys));
    SnapshotCell::wait_for_readers();
  };
  replace(one, {key_of('a'), key_of('b')});  // Step 1: both learn the new key.
  CHECK(opens(other, sealed_by(one)));
  replace(other, {key_of('a'), key_of('b')});
  replace(one, {key_of('b'), key_of('a')});  // Step 2: both seal with the new key.
  CHECK(opens(other, sealed_by(one)));
  CHECK(opens(one, old_value));
  std::string text;
  CHECK(one.open(old_value, kPurpose, text) == Opened::kByOldKey);
  CHECK(one.open(sealed_by(one), kPurpose, text) == Opened::kYes);
  replace(other, {key_of('b'), key_of('a')});
  replace(one, {key_of('b')});  // Step 3: the old key goes.
  CHECK(opens(one, sealed_by(other)));
  CHECK_FALSE(opens(one, old_value));
}

TEST_CASE("sealed_cookie: reads a key from each line", "[lb][session][sealed]") {
  const auto keys = read_seal_keys("# of the demo\n\n  " + line_of('a') + "\r\n" + line_of('b'));
  REQUIRE(keys.ok());
  CHECK(*keys == SealKeys{key_of('a'), key_of('b')});
}

TEST_CASE("sealed_cookie: a file holds as many keys as it may", "[lb][session][sealed]") {
  std::string text;
  for (std::size_t i = 0; i < kMostSealKeys; ++i)
    text += line_of(static_cast<char>('a' + i)) + "\n";
  const auto keys = read_seal_keys(text);
  REQUIRE(keys.ok());
  CHECK(keys->size() == kMostSealKeys);
}

TEST_CASE("sealed_cookie: says which line is wrong, and not what is in it",
          "[lb][session][sealed]") {
  struct Row {
    const char* when;
    std::string text;
    const char* error;
  };

  std::string too_many;
  for (char letter = 'a'; letter < 'a' + 9; ++letter)
    too_many += line_of(letter) + "\n";
  const auto row = GENERATE_COPY(values<Row>({
      {"nothing", "", "must hold a key, found none"},
      {"only remarks", "# none\n\n", "must hold a key, found none"},
      {"no base64",
       line_of('a') + "\nsecret!\n",
       "line 2: must be 32 bytes in base64, found what is not base64"},
      {"too short",
       absl::Base64Escape(std::string(31, 'x')),
       "line 1: must be 32 bytes in base64, found 31 bytes"},
      {"too long",
       "\n" + absl::Base64Escape(std::string(33, 'x')),
       "line 2: must be 32 bytes in base64, found 33 bytes"},
      {"too many", too_many, "must hold at most 8 keys, found 9"},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(read_seal_keys(row.text).status() == absl::InvalidArgumentError(row.error));
  }
}

}  // namespace
}  // namespace signalbox::lb
