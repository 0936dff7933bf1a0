// SPDX-License-Identifier: Apache-2.0
#include "tests/scenario/scenario.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "tests/support/child_policies.hpp"

namespace signalbox::test {
namespace {

using Words = std::vector<std::string>;

Words tail(const Words& words, std::size_t from) {
  return {words.begin() + static_cast<std::ptrdiff_t>(std::min(from, words.size())), words.end()};
}

XdsWorld::Priorities priorities(const Words& words) {
  return absl::StrSplit(absl::StrJoin(words, " "), absl::ByString(" | "));
}

LbConfigPtr policy(const std::string& name) {
  for (const ChildPolicy& row : child_policies()) {
    if (row.name == name) return row.config;
  }
  return nullptr;
}

Duration duration(const std::string& text) {
  absl::Duration parsed;
  std::string short_form = text;
  if (absl::EndsWith(text, "min")) short_form.resize(text.size() - 2);
  if (!absl::ParseDuration(short_form, &parsed)) return Duration::zero();
  return absl::ToChronoNanoseconds(parsed);
}

/// Leaves out what is the same in every tree: only the children of cluster_manager and of
/// priorities are told, "m/orders/child/primary" as "orders/primary".
bool shorten(std::string& line) {
  if (!absl::StartsWith(line, "start ") && !absl::StartsWith(line, "stop ")) return true;
  const Words words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  if (absl::StrContains(words[1], '{')) return false;
  const Words path = absl::StrSplit(words[1], '/');
  if (path.back() == "child" || path.size() == 1) return false;
  Words kept = tail(path, 1);
  std::erase(kept, "child");
  line = absl::StrCat(words[0], " ", absl::StrJoin(kept, "/"));
  return true;
}

}  // namespace

std::vector<std::string> Scenario::run(const std::string& command) {
  const Words words = absl::StrSplit(command, ' ', absl::SkipEmpty());
  std::vector<std::string> answer = do_command(words);
  std::vector<std::string> lines;
  for (std::string& line : tree_.take_log()) {
    if (shorten(line)) lines.push_back(std::move(line));
  }
  lines.insert(lines.end(), answer.begin(), answer.end());
  return lines;
}

std::vector<std::string> Scenario::do_command(const Words& words) {
  const std::string& verb = words.at(0);
  const std::string name = words.size() > 1 ? words[1] : "";
  if (verb == "policy") {
    policies_[name] = policy(words.at(2));
    if (policies_[name] == nullptr) return {"unknown policy: " + words[2]};
  } else if (verb == "eds") {
    const auto found = policies_.find(name);
    world_.eds(name,
               priorities(tail(words, 2)),
               found == policies_.end() ? default_lb_policy() : found->second);
  } else if (verb == "dns") {
    world_.dns(name, absl::StrJoin(tail(words, 2), " "));
  } else if (verb == "aggregate") {
    world_.aggregate(name, tail(words, 2));
  } else if (verb == "lost") {
    world_.error(name, absl::NotFoundError(absl::StrJoin(tail(words, 2), " ")));
  } else if (verb == "remove") {
    world_.remove(name);
  } else if (verb == "apply") {
    apply(tail(words, 1));
  } else if (verb == "up") {
    for (const std::string& address : tail(words, 1))
      tree_.up(address);
  } else if (verb == "down") {
    for (const std::string& address : tail(words, 1))
      tree_.down(address);
  } else if (verb == "advance") {
    tree_.advance(duration(name));
  } else if (verb == "pick") {
    return {absl::StrCat(name, " -> ", absl::StrJoin(tree_.reached(name), " "))};
  } else if (verb == "share") {
    return {absl::StrCat(name, " -> ", share(name))};
  } else {
    return {"unknown command: " + verb};
  }
  return {};
}

std::string Scenario::share(const std::string& cluster) {
  std::map<std::string, int> shares;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::string answer = tree_.pick(cluster, seed);
    if (absl::StartsWith(answer, "complete ")) answer = answer.substr(9);
    ++shares[answer];
  }
  return absl::StrJoin(shares, ", ", absl::PairFormatter(" "));
}

void Scenario::apply(const Words& words) {
  const auto retiring = std::ranges::find(words, "retiring");
  const Words routed(words.begin(), retiring);
  const Words old = retiring == words.end() ? Words{} : Words(std::next(retiring), words.end());
  tree_.apply(manager_of(routed, old), world_.config());
}

}  // namespace signalbox::test
