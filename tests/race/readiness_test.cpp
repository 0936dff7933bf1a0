// SPDX-License-Identifier: Apache-2.0
//
// Readers of the targets' readiness meet the thread that adds targets.
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "channel/ready_list.hpp"

namespace signalbox::channel {

TEST_CASE("ready list: entries of targets that are gone make room, and readers see the rest",
          "[race][status]") {
  ReadyList list;
  const auto flag = std::make_shared<std::atomic<bool>>(true);
  std::vector<std::shared_ptr<int>> kept;
  std::atomic<bool> ends{false};
  auto reader = std::async(std::launch::async, [&] {
    bool are_right = true;
    while (!ends) {
      list.each([&](const std::string& name, bool is_ready) {
        are_right = are_right && is_ready && name.starts_with("target ");
      });
    }
    return are_right;
  });
  for (int i = 0; i < 10'000; ++i) {
    const auto target = std::make_shared<int>(i);
    list.add({absl::StrCat("target ", i), target, flag});
    if (i % 100 == 0) kept.push_back(target);
  }
  ends = true;
  CHECK(reader.get());
  // Blocks that were replaced while the reader was reading are destroyed at the next replacement.
  for (int i = 0; i < 1'000; ++i)
    list.add({"gone", std::make_shared<int>(i), flag});
  std::vector<std::string> names;
  list.each([&](const std::string& name, bool) { names.push_back(name); });
  REQUIRE(names.size() == kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i)
    CHECK(names[i] == absl::StrCat("target ", *kept[i]));
  // Entries of targets that are gone hold the flag. At most as many of them stay as of the others.
  CHECK(static_cast<std::size_t>(flag.use_count()) <= 1 + 2 * kept.size());
}

}  // namespace signalbox::channel
