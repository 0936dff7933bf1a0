// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/shrink.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace signalbox::sim {
namespace {

using testing::Menu;

// The most steps of one search: those of about a hundred usual worlds. They take some seconds, or
// half a minute in a debug build.
constexpr std::uint64_t kMostSteps = 2'000'000;

class Shrinker {
 public:
  Shrinker(std::uint64_t seed, std::string sentence)
      : seed_(seed), sentence_(std::move(sentence)) {}

  bool tired() const { return steps_ >= kMostSteps; }

  bool still_breaks(const Menu& menu) {
    World world(seed_, menu, nullptr);
    const Outcome outcome = world.run();
    steps_ += outcome.steps;
    return sentence_of(outcome) == sentence_;
  }

  // Removes half of the faults at once where possible, then fewer.
  bool take_some_off(Menu& menu) {
    const std::vector<Fault> all(menu.begin(), menu.end());
    for (std::size_t size = (all.size() + 1) / 2; size > 0; size /= 2) {
      for (std::size_t begin = 0; begin < all.size() && !tired(); begin += size) {
        Menu fewer = menu;
        for (std::size_t i = begin; i < std::min(begin + size, all.size()); ++i)
          fewer.erase(all[i]);
        if (!still_breaks(fewer)) continue;
        menu = std::move(fewer);
        return true;
      }
    }
    return false;
  }

 private:
  std::uint64_t seed_;
  std::string sentence_;
  std::uint64_t steps_ = 0;
};

}  // namespace

std::string sentence_of(const Outcome& outcome) {
  if (outcome.broken.empty()) return "";
  return outcome.broken.front().substr(0, outcome.broken.front().find(" — but "));
}

Shrunk shrink(std::uint64_t seed, const Outcome& failed) {
  Menu fired;
  for (const auto& [fault, count] : failed.fired)
    fired.insert(fault);
  Shrinker shrinker(seed, sentence_of(failed));
  // The search begins with the faults that fired, because each fault has its own dice. If the seed
  // does not break with these alone, the search begins with the whole menu.
  Menu menu = shrinker.still_breaks(fired) ? fired : failed.menu;
  while (!shrinker.tired() && shrinker.take_some_off(menu)) {
  }
  return {std::move(menu), !shrinker.tired()};
}

}  // namespace signalbox::sim
