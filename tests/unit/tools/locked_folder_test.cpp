// SPDX-License-Identifier: Apache-2.0
#include "tools/locked_folder.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temporary_folder.hpp"

namespace signalbox::tools {
namespace {

constexpr const char* kPrefix = "signalbox-locked-";

// TMPDIR of this process is a folder of the test, so folders of other tests are not removed.
class OwnTemporary {
 public:
  OwnTemporary() {
    if (const char* const before = std::getenv("TMPDIR")) before_ = before;
    std::filesystem::create_directory(path());
    ::setenv("TMPDIR", path().c_str(), /*overwrite=*/1);
  }

  ~OwnTemporary() {
    if (before_)
      ::setenv("TMPDIR", before_->c_str(), /*overwrite=*/1);
    else
      ::unsetenv("TMPDIR");
  }

  OwnTemporary(const OwnTemporary&) = delete;
  OwnTemporary& operator=(const OwnTemporary&) = delete;

  std::string path() const { return folder_.path("tmp"); }

 private:
  test::TemporaryFolder folder_;
  std::optional<std::string> before_;
};

LockedFolder made() {
  auto folder = LockedFolder::make(kPrefix);
  INFO(folder.status().ToString());
  REQUIRE(folder.ok());
  return *std::move(folder);
}

}  // namespace

TEST_CASE("locked_folder: it is there while the object lives, with its files", "[locked_folder]") {
  const OwnTemporary own;
  std::string path;
  {
    LockedFolder folder = made();
    path = folder.path();
    CHECK_THAT(path, Catch::StartsWith(own.path() + "/" + kPrefix));
    std::ofstream(path + "/a file") << "text";
    const LockedFolder moved = std::move(folder);
    CHECK(std::filesystem::exists(path + "/a file"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("locked_folder: one that a killed process left is removed by the next",
          "[locked_folder]") {
  const OwnTemporary own;
  const LockedFolder living = made();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // Ends without the destructor, as after SIGKILL.
    auto folder = LockedFolder::make(kPrefix);
    if (folder.ok()) std::ofstream(folder->path() + "/a file") << "text";
    ::_exit(folder.ok() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  const auto folders = [&own] {
    return std::distance(std::filesystem::directory_iterator(own.path()),
                         std::filesystem::directory_iterator());
  };
  CHECK(folders() == 2);
  const LockedFolder next = made();
  CHECK(folders() == 2);
  CHECK(std::filesystem::exists(living.path()));
  CHECK(std::filesystem::exists(next.path()));
}

TEST_CASE("locked_folder: other names, files and links stay", "[locked_folder]") {
  const OwnTemporary own;
  const std::string prefix = own.path() + "/" + kPrefix;
  std::filesystem::create_directory(prefix + "toolong");
  std::filesystem::create_directory(own.path() + "/other-abc123");
  std::ofstream(prefix + "afile1") << "text";
  std::filesystem::create_directory_symlink(own.path() + "/other-abc123", prefix + "alink1");
  const LockedFolder folder = made();
  for (const std::string& path :
       {prefix + "toolong", own.path() + "/other-abc123", prefix + "afile1", prefix + "alink1"}) {
    CAPTURE(path);
    CHECK(std::filesystem::exists(path));
  }
}

TEST_CASE("locked_folder: no folder for temporary files is a sentence", "[locked_folder]") {
  const OwnTemporary own;
  ::setenv("TMPDIR", (own.path() + "/missing").c_str(), /*overwrite=*/1);
  const auto folder = LockedFolder::make(kPrefix);
  CHECK_THAT(std::string(folder.status().message()),
             Catch::Contains("there is no folder for temporary files"));
}

}  // namespace signalbox::tools
