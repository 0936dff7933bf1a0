// SPDX-License-Identifier: Apache-2.0
#include "tools/load/result_folder.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.hpp"

namespace signalbox::tools {
namespace {

namespace fs = std::filesystem;

void make_old(const fs::path& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

fs::path old_folder(const fs::path& path) {
  fs::create_directory(path);
  std::ofstream(path / "signalbox") << "{}";
  make_old(path);
  return path;
}

}  // namespace

TEST_CASE("result folder: it goes with its object", "[load][files]") {
  const test::TemporaryFolder parent;
  std::string path;
  {
    const ResultFolder folder(parent.path(""));
    path = folder.path();
    std::ofstream(folder.file("signalbox")) << "{}";
    CHECK(fs::exists(fs::path(path) / "signalbox"));
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("result folder: what a dead process left is removed, and nothing else", "[load][files]") {
  const test::TemporaryFolder parent;
  const fs::path in = parent.path("");
  const ResultFolder living(in);
  make_old(living.path());
  const fs::path dead = old_folder(in / "signalbox-load-dead01");
  const fs::path other = old_folder(in / "another-tool-dead01");
  const fs::path linked = old_folder(in / "linked");
  const fs::path link = in / "signalbox-load-link01";
  fs::create_directory_symlink(linked, link);
  const fs::path young = in / "signalbox-load-young1";
  fs::create_directory(young);

  const ResultFolder folder(in);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(living.path()));
  CHECK(fs::exists(other / "signalbox"));
  CHECK(fs::exists(linked / "signalbox"));
  CHECK(fs::exists(young));
}

}  // namespace signalbox::tools
