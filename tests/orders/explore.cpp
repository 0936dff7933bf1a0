// SPDX-License-Identifier: Apache-2.0
#include "tests/orders/explore.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "tests/orders/world.hpp"

namespace signalbox::orders {
namespace {

class Search {
 public:
  Search(const Story& story, const Limits& limits) : story_(story), limits_(limits) {}

  Report run() {
    while (next_ < nodes_.size() && report_.broken.empty()) {
      if (limits_.states != 0 && report_.states >= limits_.states) return report_;
      visit(next_++);
    }
    report_.is_complete = report_.broken.empty() && !cut_;
    if (report_.broken.empty()) report_.depth = deepest_;
    return report_;
  }

 private:
  /// A state: the step that leads to it, as an index into World::steps() of the state before.
  struct Node {
    std::uint32_t before = 0;
    std::uint8_t step = 0;
    std::uint8_t depth = 0;
  };

  // The steps from the first state to this one.
  std::vector<std::uint8_t> path_to(std::size_t place) const {
    std::vector<std::uint8_t> path;
    for (; nodes_[place].depth > 0; place = nodes_[place].before)
      path.push_back(nodes_[place].step);
    std::ranges::reverse(path);
    return path;
  }

  std::unique_ptr<World> world_of(const std::vector<std::uint8_t>& path) const {
    auto world = std::make_unique<World>(story_);
    for (const std::uint8_t step : path)
      world->take(world->steps()[step]);
    return world;
  }

  void visit(std::size_t place) {
    const std::vector<std::uint8_t> path = path_to(place);
    try {
      check(place, path);
    } catch (const std::exception& thrown) {
      report_.broken = absl::StrCat("thrown: ", thrown.what());
    }
    if (!report_.broken.empty()) tell(path);
  }

  // Throws when a core throws: in the last step, when a rule asks it, or when its letters are read.
  void check(std::size_t place, const std::vector<std::uint8_t>& path) {
    const auto world = world_of(path);
    if (!seen_.insert(world->key()).second) return;
    ++report_.states;
    if (path.size() > deepest_) {
      report_.depth = deepest_;
      deepest_ = path.size();
      expected_.clear();
    }
    report_.broken = world->broken();
    const std::vector<Step> steps = world->steps();
    if (steps.empty()) {
      ++report_.rests;
      if (report_.broken.empty()) report_.broken = world->broken_at_rest();
    }
    if (report_.broken.empty()) follow(place, *world, steps);
  }

  void follow(std::size_t place, const World& world, const std::vector<Step>& steps) {
    const Node& node = nodes_[place];
    const std::uint8_t depth = node.depth + 1;
    if (limits_.depth != 0 && depth > limits_.depth) {
      cut_ = cut_ || !steps.empty();
      return;
    }
    report_.transitions += steps.size();
    for (std::size_t step = 0; step < steps.size(); ++step) {
      if (!expected_.insert(world.key_after(steps[step])).second) continue;
      nodes_.push_back({static_cast<std::uint32_t>(place), static_cast<std::uint8_t>(step), depth});
    }
  }

  // Leaves the last step out, because it may throw.
  void tell(const std::vector<std::uint8_t>& path) {
    World world(story_);
    for (const std::uint8_t step : path) {
      const Step taken = world.steps()[step];
      report_.trace.push_back(world.describe(taken));
      if (report_.trace.size() < path.size()) world.take(taken);
    }
    report_.depth = path.size();
  }

  const Story& story_;
  const Limits limits_;
  std::vector<Node> nodes_{Node{}};  ///< In the order of the search.
  std::size_t next_ = 0;             ///< The node that is visited next.
  std::size_t deepest_ = 0;
  bool cut_ = false;                       ///< The limit of depth left states out.
  absl::flat_hash_set<std::string> seen_;  ///< The keys of the states.
  /// World::key_after() of the steps that lead to states of the depth that comes next.
  absl::flat_hash_set<std::string> expected_;
  Report report_;
};

}  // namespace

Report explore(const Story& story, const Limits& limits) {
  return Search(story, limits).run();
}

std::string to_text(const Report& report) {
  std::string text = absl::StrCat(report.states,
                                  " states, depth ",
                                  report.depth,
                                  ", ",
                                  report.transitions,
                                  " transitions, ",
                                  report.rests,
                                  " at rest",
                                  report.is_complete ? ", complete" : "",
                                  "\n");
  if (report.broken.empty()) return text;
  absl::StrAppend(&text, "BROKEN: ", report.broken, "\nshortest trace:\n");
  for (std::size_t step = 0; step < report.trace.size(); ++step)
    absl::StrAppend(&text, "  ", step + 1, ". ", report.trace[step], "\n");
  return text;
}

}  // namespace signalbox::orders
