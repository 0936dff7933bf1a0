// SPDX-License-Identifier: Apache-2.0
#include "actors/io/seal_key_file.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include <catch2/catch.hpp>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lb/pick/snapshot_cell.hpp"
#include "tests/support/happened.hpp"
#include "tests/support/no_descriptors.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::actors {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using namespace std::chrono_literals;
using test::Happened;
using test::NoDescriptors;
using test::TemporaryFolder;

std::string line_of(char letter) {
  return absl::Base64Escape(std::string(32, letter)) + "\n";
}

lb::CookieSeal seal_of(char letter) {
  lb::SealKey key{};
  key.fill(static_cast<unsigned char>(letter));
  return lb::CookieSeal({key});
}

// The tests read keys inside a read section, as picks do. Old keys are freed only after such read
// sections have ended.
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

// A key file with the key 'a' first, and the complaints about the file.
struct KeyFileWorld {
  KeyFileWorld() { REQUIRE(file.ok()); }

  const TemporaryFolder folder;
  const std::string path = folder.write("keys", line_of('a'));
  Happened<std::string> complaints;
  const absl::StatusOr<std::unique_ptr<SealKeyFile>> file =
      SealKeyFile::start(path, [this](const std::string& text) { complaints.add(text); });
};

TEST_CASE("seal_key_file: keys are taken as the file changes, and bad ones are not",
          "[actors][io][sealed]") {
  KeyFileWorld world;
  const auto seal = (*world.file)->seal();
  CHECK(opens(*seal, sealed_by(seal_of('a'))));
  CHECK(opens(seal_of('a'), sealed_by(*seal)));

  world.folder.write("keys", line_of('b') + line_of('a'));
  CHECK(test::eventually([&] { return opens(seal_of('b'), sealed_by(*seal)); }));
  CHECK(opens(*seal, sealed_by(seal_of('a'))));
  CHECK(world.complaints.is_empty());

  world.folder.write("keys", line_of('c') + "oops!");
  CHECK_THAT(world.complaints.next(),
             StartsWith("seal keys: " + world.path + ": line 2: must be 32 bytes in base64") &&
                 Contains("the last good keys stay in use") && !Contains("oops"));
  CHECK(opens(seal_of('b'), sealed_by(*seal)));
  fs::remove(world.path);
  CHECK_THAT(world.complaints.next(),
             StartsWith("seal keys: cannot read " + world.path) &&
                 Contains("the last good keys stay in use"));
  CHECK(opens(seal_of('b'), sealed_by(*seal)));

  world.folder.write("keys", line_of('d'));
  CHECK(test::eventually([&] { return opens(seal_of('d'), sealed_by(*seal)); }));
  CHECK_FALSE(opens(*seal, sealed_by(seal_of('b'))));
}

TEST_CASE("seal_key_file: a file that others can write is not used", "[actors][io][sealed]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("keys", line_of('a'));
  fs::permissions(path, fs::perms::owner_read | fs::perms::others_write);
  const std::string why = "seal keys: " + path + ": others can write it, and so could make cookies";
  const auto refused = SealKeyFile::start(path, [](const std::string&) {});
  CHECK(refused.status().code() == absl::StatusCode::kPermissionDenied);
  CHECK_THAT(std::string(refused.status().message()), StartsWith(why));

  // Later a file that others can write replaces a good file.
  fs::permissions(path, fs::perms::owner_all);
  Happened<std::string> complaints;
  const auto file =
      SealKeyFile::start(path, [&](const std::string& text) { complaints.add(text); });
  REQUIRE(file.ok());
  const auto seal = (*file)->seal();
  const std::string other = folder.write("other", line_of('b'));
  fs::permissions(other, fs::perms::owner_all | fs::perms::others_write);
  fs::rename(other, path);
  CHECK_THAT(complaints.next(), StartsWith(why) && Contains("the last good keys stay in use"));
  CHECK(opens(seal_of('a'), sealed_by(*seal)));
  // The keys of the new file are used once others cannot write the file.
  fs::permissions(path, fs::perms::owner_all);
  CHECK(test::eventually([&] { return opens(seal_of('b'), sealed_by(*seal)); }));
  CHECK(complaints.is_empty());
}

TEST_CASE("seal_key_file: a file that others can read is used, and warned of once",
          "[actors][io][sealed]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("keys", line_of('a'));
  fs::permissions(path, fs::perms::owner_all | fs::perms::others_read);
  Happened<std::string> complaints;
  Happened<std::string> warnings;
  const auto file = SealKeyFile::start(
      path,
      [&](const std::string& text) { complaints.add(text); },
      [&](const std::string& text) { warnings.add(text); });
  REQUIRE(file.ok());
  const std::string warning =
      "seal keys: " + path + ": others can read it, and so can make cookies; chmod o-r it";
  CHECK(warnings.next() == warning);
  const auto seal = (*file)->seal();
  const auto change_to = [&](char letter, fs::perms rights) {
    const std::string next = folder.write("next", line_of(letter));
    fs::permissions(next, rights);
    fs::rename(next, path);
    CHECK(test::eventually([&] { return opens(seal_of(letter), sealed_by(*seal)); }));
  };
  change_to('b', fs::perms::owner_all | fs::perms::others_read);
  change_to('c', fs::perms::owner_all);
  change_to('d', fs::perms::owner_all | fs::perms::others_read);
  CHECK(warnings.next() == warning);
  CHECK(warnings.is_empty());
  CHECK(complaints.is_empty());
}

// Waits until a file of a folder has been read and closed. It sees readings since its construction.
class Readings {
 public:
  explicit Readings(const TemporaryFolder& folder) : news_(::inotify_init1(IN_CLOEXEC)) {
    REQUIRE(::inotify_add_watch(news_, folder.path("").c_str(), IN_CLOSE_NOWRITE) >= 0);
  }

  ~Readings() { ::close(news_); }

  Readings(const Readings&) = delete;
  Readings& operator=(const Readings&) = delete;

  // Waits for a reading of any file of the folder.
  void wait() const {
    pollfd readable{.fd = news_, .events = POLLIN, .revents = 0};
    const auto patience = std::chrono::milliseconds(test::kPatience).count();
    REQUIRE(::poll(&readable, 1, static_cast<int>(patience)) == 1);
  }

 private:
  int news_;
};

// Causes a complaint about another key file and checks that it is the next complaint. Complaints
// about earlier changes of other files would arrive before it.
void complain_last(const TemporaryFolder& folder, Happened<std::string>& complaints) {
  const std::string path = folder.write("other", line_of('x'));
  const auto file =
      SealKeyFile::start(path, [&](const std::string& text) { complaints.add(text); });
  REQUIRE(file.ok());
  folder.write("other", "oops!");
  CHECK_THAT(complaints.next(), StartsWith("seal keys: " + path + ": line 1"));
}

TEST_CASE("seal_key_file: one that is good again before it has settled is not complained of",
          "[actors][io][sealed]") {
  bool was_in_time = false;
  while (!was_in_time) {
    KeyFileWorld world;
    const Readings readings(world.folder);
    const auto begun = std::chrono::steady_clock::now();
    world.folder.write("keys", "oops!");
    readings.wait();
    world.folder.write("keys", line_of('b'));
    was_in_time = std::chrono::steady_clock::now() - begun < 200ms;
    if (!was_in_time) continue;  // The file was bad for so long that a complaint is allowed.
    CHECK(test::eventually([&] { return opens(seal_of('b'), sealed_by(*(*world.file)->seal())); }));
    complain_last(world.folder, world.complaints);
  }
}

TEST_CASE("seal_key_file: what happens to its neighbours puts no complaint off",
          "[actors][io][sealed]") {
  KeyFileWorld world;
  world.folder.write("keys", "oops!");
  CHECK(test::eventually([&] {
    world.folder.write("neighbour", "news");
    return !world.complaints.is_empty();
  }));
}

TEST_CASE("seal_key_file: one that cannot be watched is tried again", "[actors][io][sealed]") {
  KeyFileWorld world;
  const std::string next = world.folder.write("next", line_of('b'));
  const auto seal = (*world.file)->seal();
  std::string complaint;
  {
    const NoDescriptors none;
    fs::rename(next, world.path);
    complaint = world.complaints.next();
  }
  CHECK_THAT(complaint,
             StartsWith("seal keys: cannot watch " + world.path) &&
                 Contains("the last good keys stay in use"));
  CHECK(opens(seal_of('a'), sealed_by(*seal)));
  // The new file is read once it can be watched again, without another change of the file.
  CHECK(test::eventually([&] { return opens(seal_of('b'), sealed_by(*seal)); }));
  CHECK(world.complaints.is_empty());
  world.folder.write("keys", line_of('c'));
  CHECK(test::eventually([&] { return opens(seal_of('c'), sealed_by(*seal)); }));
}

TEST_CASE("seal_key_file: keys stay as long as somebody may read them", "[actors][io][sealed]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("keys", line_of('a'));
  Happened<std::string> complaints;
  const auto file = SealKeyFile::start(path, [](const std::string&) {});
  REQUIRE(file.ok());
  const auto seal = (*file)->seal();
  {
    const lb::SnapshotCell::Reader reader(any_cell());
    folder.write("keys", line_of('b'));
    CHECK(test::eventually([&] { return opens(seal_of('b'), sealed_by(*seal)); }));
    // The reader keeps the old keys 'a' alive. The file's next change waits until they are freed.
    folder.write("keys", line_of('c'));
    complain_last(folder, complaints);
    CHECK(opens(seal_of('b'), sealed_by(*seal)));
  }
  CHECK(test::eventually([&] { return opens(seal_of('c'), sealed_by(*seal)); }));
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
