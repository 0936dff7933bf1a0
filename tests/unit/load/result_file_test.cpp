// SPDX-License-Identifier: Apache-2.0
#include "tools/load/result_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tools/load/file_limit.hpp"

namespace signalbox::tools {
namespace {

TEST_CASE("result_file: a child process writes what its parent reads", "[load][result_file]") {
  auto made = ResultFile::make("result");
  INFO(made.status().ToString());
  REQUIRE(made.ok());
  CHECK(made->text().empty());
  REQUIRE(std::system(absl::StrCat("printf 'a result' > ", made->path()).c_str()) == 0);
  CHECK(made->text() == "a result");

  const ResultFile moved = *std::move(made);
  CHECK(moved.text() == "a result");
}

TEST_CASE("result_file: is read when no further file can be opened", "[load][result_file]") {
  const auto made = ResultFile::make("result");
  REQUIRE(made.ok());
  const std::string text(200'000, 'x');
  std::ofstream(made->path()) << text;
  const rlim_t former = raise_file_limit();
  set_file_limit(0);
  const std::string read = made->text();
  set_file_limit(former);
  CHECK(read == text);
}

TEST_CASE("result_file: nothing is left of it", "[load][result_file]") {
  std::string path;
  {
    const auto made = ResultFile::make("result");
    REQUIRE(made.ok());
    path = made->path();
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace signalbox::tools
