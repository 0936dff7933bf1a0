// SPDX-License-Identifier: Apache-2.0
//
// A folder for one test's files, removed when the test ends.
//
//   test ─▶ folder.write("resources.yaml", text) ─▶ path ─▶ the program under test

#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace signalbox::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "signalbox-test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }

  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

  /// Writes another file and renames it to `name`, so that no reader sees half a file. Returns the
  /// path.
  std::string write(const std::string& name, const std::string& text) const {
    const std::string unfinished = path(name + ".unfinished");
    std::ofstream(unfinished) << text;
    std::filesystem::rename(unfinished, path(name));
    return path(name);
  }

 private:
  std::string path_;
};

}  // namespace signalbox::test
