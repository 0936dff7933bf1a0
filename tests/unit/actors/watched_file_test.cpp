// SPDX-License-Identifier: Apache-2.0
#include "actors/io/watched_file.hpp"

#include <filesystem>
#include <fstream>
#include <functional>

#include <catch2/catch.hpp>
#include <poll.h>
#include <sys/stat.h>

#include "tests/support/no_descriptors.hpp"
#include "tests/support/no_rights.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::actors::watched_file_test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::StartsWith;
using test::NoDescriptors;
using test::NoRights;
using test::TemporaryFolder;

// Waits until the descriptor is readable.
bool something_happens(const WatchedFile& file) {
  pollfd readable{.fd = file.descriptor(), .events = POLLIN, .revents = 0};
  const auto patience = std::chrono::milliseconds(test::kPatience).count();
  return ::poll(&readable, 1, static_cast<int>(patience)) == 1;
}

// Waits for the next report of the file: its new text, or the reason why it cannot be read.
absl::StatusOr<std::string> next(WatchedFile& file) {
  for (;;) {
    if (!something_happens(file)) return absl::DeadlineExceededError("nothing happened");
    auto change = file.read_change();
    if (!change.ok()) return change.status();
    if (change->has_value()) return **std::move(change);
  }
}

// Writes in place, as some editors and command shells do.
void write_in_place(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

void point_link(const std::string& link, const std::string& target) {
  fs::create_symlink(target, link + ".new");
  fs::rename(link + ".new", link);
}

}  // namespace

TEST_CASE("watched_file: a file that must not be read is PERMISSION_DENIED", "[actors][io][file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "secret");
  fs::permissions(path, fs::perms::none);
  // NoRights changes the user of the thread, which must still be able to search the folder.
  fs::permissions(folder.path("."), fs::perms::all);
  const NoRights rights;
  for (const absl::Status& status : {read_file(path).status(), WatchedFile::open(path).status()}) {
    CHECK(status.code() == absl::StatusCode::kPermissionDenied);
    CHECK(std::string(status.message()) == "cannot read " + path + ": Permission denied");
  }
  CHECK(read_file(folder.path("none")).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("watched_file: a file beyond max_file_bytes is not read", "[actors][io][file][limits]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "four");
  CHECK(read_file(path, 4).value_or("") == "four");
  auto file = WatchedFile::open(path, 4);
  REQUIRE(file.ok());
  const auto beyond = [](const std::string& name, const std::string& found) {
    return "cannot read " + name + ": must have at most 4 bytes, found " + found;
  };
  const std::string named = " (limit max_file_bytes)";
  SECTION("the error says how long the file is") {
    folder.write("file", "fives");
    CHECK(read_file(path, 4).status() == absl::ResourceExhaustedError(beyond(path, "5")));
    CHECK(WatchedFile::open(path, 4).status() ==
          absl::ResourceExhaustedError(beyond(path, "5") + named));
  }
  SECTION("the limit holds for a file that does not know its size") {
    const std::string sizeless = "/proc/self/status";
    REQUIRE(fs::file_size(sizeless) == 0);
    CHECK(read_file(sizeless, 4).status().message() == beyond(sizeless, "more"));
  }
  SECTION("a watched file that grows beyond the limit keeps its last text, and recovers") {
    folder.write("file", "fives");
    CHECK(next(*file).status().message() == beyond(path, "5") + named);
    CHECK(file->text() == "four");
    folder.write("file", "4444");
    CHECK(next(*file).value_or("") == "4444");
  }
}

TEST_CASE("watched_file: hears of every way in which a file is changed", "[actors][io][file]") {
  struct Row {
    const char* way;
    // Makes a file with the text "old" and returns the path to watch.
    std::function<std::string(const TemporaryFolder&)> make;
    // Changes the text behind that path to "new".
    std::function<void(const TemporaryFolder&)> change;
  };

  const Row rows[] = {
      {"written in place",
       [](const auto& folder) { return folder.write("file", "old"); },
       [](const auto& folder) { write_in_place(folder.path("file"), "new"); }},
      {"another file put in its place",
       [](const auto& folder) { return folder.write("file", "old"); },
       [](const auto& folder) { folder.write("file", "new"); }},
      {"a link of a mounted ConfigMap redirected",
       [](const auto& folder) {
         fs::create_directory(folder.path("..1"));
         fs::create_directory(folder.path("..2"));
         folder.write("..1/file", "old");
         folder.write("..2/file", "new");
         fs::create_symlink("..1", folder.path("..data"));
         fs::create_symlink("..data/file", folder.path("file"));
         return folder.path("file");
       },
       [](const auto& folder) { point_link(folder.path("..data"), "..2"); }},
      {"the file behind a link written in place",
       [](const auto& folder) {
         fs::create_directory(folder.path("elsewhere"));
         fs::create_symlink(folder.write("elsewhere/file", "old"), folder.path("link"));
         return folder.path("link");
       },
       [](const auto& folder) { write_in_place(folder.path("elsewhere/file"), "new"); }},
      {"the folder's link redirected",
       [](const auto& folder) {
         fs::create_directory(folder.path("release-1"));
         fs::create_directory(folder.path("release-2"));
         folder.write("release-1/file", "old");
         folder.write("release-2/file", "new");
         fs::create_symlink("release-1", folder.path("current"));
         return folder.path("current/file");
       },
       [](const auto& folder) { point_link(folder.path("current"), "release-2"); }},
      {"a link made where none was, in a path with dots",
       [](const auto& folder) {
         fs::create_directory(folder.path("there"));
         folder.write("new-file", "new");
         return folder.path("there/.././") +
                fs::path(folder.write("file", "old")).filename().string();
       },
       [](const auto& folder) {
         fs::create_symlink("new-file", folder.path("link"));
         fs::rename(folder.path("link"), folder.path("file"));
       }},
  };

  for (const Row& row : rows) {
    INFO(row.way);
    const TemporaryFolder folder;
    auto file = WatchedFile::open(row.make(folder));
    REQUIRE(file.ok());
    CHECK(file->text() == "old");
    row.change(folder);
    const auto text = next(*file);
    CHECK(text.ok());
    CHECK(text.value_or("") == "new");
  }
}

TEST_CASE("watched_file: a file that goes is an error, and any text then a change",
          "[actors][io][file]") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("sub"));
  auto file = WatchedFile::open(folder.write("sub/file", "same"));
  REQUIRE(file.ok());
  SECTION("the file") {
    fs::remove(folder.path("sub/file"));
    CHECK(next(*file).status().message() ==
          "cannot read " + folder.path("sub/file") + ": No such file or directory");
    folder.write("sub/file", "same");
  }
  SECTION("its folder, which is renamed and made anew") {
    fs::rename(folder.path("sub"), folder.path("gone"));
    CHECK(absl::IsNotFound(next(*file).status()));
    fs::create_directory(folder.path("sub"));
    folder.write("sub/file", "same");
  }
  SECTION("its folder, which is deleted and renamed into place") {
    fs::remove_all(folder.path("sub"));
    CHECK(absl::IsNotFound(next(*file).status()));
    fs::create_directory(folder.path("next"));
    folder.write("next/file", "same");
    fs::rename(folder.path("next"), folder.path("sub"));
  }
  // Each step of the change may report an error before the last step succeeds.
  auto text = next(*file);
  while (absl::IsNotFound(text.status()))
    text = next(*file);
  CHECK(text.value_or("") == "same");
  folder.write("sub/file", "other");
  CHECK(next(*file).value_or("") == "other");
}

TEST_CASE("watched_file: where nothing is left to watch with, it can be tried again",
          "[actors][io][file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("f", "one");
  auto file = WatchedFile::open(path);
  REQUIRE(file.ok());
  CHECK(file->is_watched());
  write_in_place(path, "two");
  REQUIRE(something_happens(*file));
  std::vector<absl::StatusOr<std::optional<std::string>>> seen;
  std::vector<bool> watched;
  {
    const NoDescriptors none;
    for (int i = 0; i < 2; ++i) {
      seen.push_back(file->read_change());
      watched.push_back(file->is_watched());
    }
  }
  CHECK(watched == std::vector<bool>{false, false});
  CHECK_THAT(std::string(seen[0].status().message()), StartsWith("cannot watch " + path));
  // The file still cannot be watched, and the error is not reported twice.
  CHECK((seen[1].ok() && !seen[1]->has_value()));
  const auto recovered = file->read_change();
  REQUIRE(recovered.ok());
  CHECK(recovered->value_or("nothing") == "two");
  CHECK(file->is_watched());
  write_in_place(path, "three");
  CHECK(next(*file).value_or("nothing") == "three");
}

TEST_CASE("watched_file: neighbours and the same text again are no change", "[actors][io][file]") {
  const TemporaryFolder folder;
  auto file = WatchedFile::open(folder.write("file", "old"));
  REQUIRE(file.ok());
  folder.write("neighbour", "new");
  folder.write("file", "old");
  write_in_place(folder.path("file"), "old");
  folder.write("file", "new");
  CHECK(next(*file).value_or("") == "new");
  CHECK_FALSE(file->read_change()->has_value());
}

TEST_CASE("watched_file: what is no readable file says why", "[actors][io][file]") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("loop", folder.path("loop"));

  struct Row {
    std::string path;
    std::string why;
  };

  for (const Row& row : {Row{folder.path("none"), "No such file or directory"},
                         Row{folder.path("no/such/folder"), "No such file or directory"},
                         Row{folder.path("."), "it is a folder"},
                         Row{folder.path("loop"), "Too many levels of symbolic links"},
                         Row{pipe, "it is no regular file"}}) {
    CHECK(WatchedFile::open(row.path).status().message() ==
          "cannot read " + row.path + ": " + row.why);
  }
}

}  // namespace signalbox::actors::watched_file_test
