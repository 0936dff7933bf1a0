// SPDX-License-Identifier: Apache-2.0
#include "actors/io/seal_key_file.hpp"

#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include <catch2/catch.hpp>

#include "lb/snapshot_cell.hpp"
#include "tests/support/happened.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::actors {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::Happened;
using test::TemporaryFolder;

std::string line_of(char letter) {
  return absl::Base64Escape(std::string(32, letter)) + "\n";
}

lb::CookieSeal seal_of(char letter) {
  lb::SealKey key{};
  key.fill(static_cast<unsigned char>(letter));
  return lb::CookieSeal({key});
}

// Keys are read as picks read them: whoever changes them waits for the reader.
const lb::SnapshotCell& any_cell() {
  static const lb::SnapshotCell cell;
  return cell;
}

std::string sealed_by(const lb::CookieSeal& seal) {
  const lb::SnapshotCell::Reader reader(any_cell());
  std::string value;
  REQUIRE(seal.seal("host", "purpose", value));
  return value;
}

bool opens(const lb::CookieSeal& seal, const std::string& value) {
  const lb::SnapshotCell::Reader reader(any_cell());
  std::string text;
  return seal.open(value, "purpose", text) != lb::CookieSeal::Opened::kNo;
}

TEST_CASE("seal_key_file: keys are taken as the file changes, and bad ones are not",
          "[actors][io][sealed]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("keys", line_of('a'));
  Happened<std::string> complaints;
  const auto file =
      SealKeyFile::start(path, [&](const std::string& text) { complaints.add(text); });
  REQUIRE(file.ok());
  const auto seal = (*file)->seal();
  CHECK(opens(*seal, sealed_by(seal_of('a'))));
  CHECK(opens(seal_of('a'), sealed_by(*seal)));

  folder.write("keys", line_of('b') + line_of('a'));
  CHECK(test::eventually([&] { return opens(seal_of('b'), sealed_by(*seal)); }));
  CHECK(opens(*seal, sealed_by(seal_of('a'))));
  CHECK(complaints.is_empty());

  folder.write("keys", line_of('c') + "oops!");
  CHECK_THAT(complaints.next(),
             StartsWith("seal keys: " + path + ": line 2: must be 32 bytes in base64") &&
                 Contains("the last good keys stay in use") && !Contains("oops"));
  CHECK(opens(seal_of('b'), sealed_by(*seal)));
  fs::remove(path);
  CHECK_THAT(complaints.next(), Contains("the last good keys stay in use"));
  CHECK(opens(seal_of('b'), sealed_by(*seal)));

  folder.write("keys", line_of('d'));
  CHECK(test::eventually([&] { return opens(seal_of('d'), sealed_by(*seal)); }));
  CHECK_FALSE(opens(*seal, sealed_by(seal_of('b'))));
}

TEST_CASE("seal_key_file: one that cannot be used from the beginning is an error",
          "[actors][io][sealed]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("keys");
  const auto why = [&] {
    return std::string(SealKeyFile::start(path, [](const std::string&) {}).status().message());
  };
  CHECK_THAT(why(), StartsWith("seal keys: ") && Contains(path));
  folder.write("keys", "# later\n");
  CHECK(why() == "seal keys: " + path + ": must hold a key, found none");
}

TEST_CASE("seal_key_file: a seal outlives its file", "[actors][io][sealed]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("keys", line_of('a'));
  lb::CookieSealPtr seal;
  {
    const auto file = SealKeyFile::start(path, [](const std::string&) {});
    REQUIRE(file.ok());
    seal = (*file)->seal();
  }
  CHECK(opens(*seal, sealed_by(*seal)));
}

}  // namespace
}  // namespace signalbox::actors
