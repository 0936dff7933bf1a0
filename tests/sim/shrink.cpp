// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/shrink.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace signalbox::sim {
namespace {

using testing::Menu;

bool still_breaks(std::uint64_t seed, const Menu& menu, const std::string& sentence) {
  World world(seed, menu, nullptr);
  return sentence_of(world.run()) == sentence;
}

// Half of them at once where that is possible, then fewer.
bool take_some_off(std::uint64_t seed, const std::string& sentence, Menu& menu) {
  const std::vector<Fault> all(menu.begin(), menu.end());
  for (std::size_t size = (all.size() + 1) / 2; size > 0; size /= 2) {
    for (std::size_t begin = 0; begin < all.size(); begin += size) {
      Menu fewer = menu;
      for (std::size_t i = begin; i < std::min(begin + size, all.size()); ++i)
        fewer.erase(all[i]);
      if (!still_breaks(seed, fewer, sentence)) continue;
      menu = std::move(fewer);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string sentence_of(const Outcome& outcome) {
  if (outcome.broken.empty()) return "";
  return outcome.broken.front().substr(0, outcome.broken.front().find(" — but "));
}

Menu shrink(std::uint64_t seed, const Outcome& failed) {
  const std::string sentence = sentence_of(failed);
  Menu fired;
  for (const auto& [fault, count] : failed.fired)
    fired.insert(fault);
  // What never fired made no difference: its dice are its own.
  Menu menu = still_breaks(seed, fired, sentence) ? fired : failed.menu;
  while (take_some_off(seed, sentence, menu)) {
  }
  return menu;
}

}  // namespace signalbox::sim
