// SPDX-License-Identifier: Apache-2.0
#include "tests/scenario/scenario.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "lb/xx_hash.hpp"
#include "messages/invariant.hpp"
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

using Answers = std::map<std::string, int>;

std::string short_form(absl::string_view answer) {
  absl::ConsumePrefix(&answer, "complete ");
  return std::string(answer);
}

std::string to_text(const Answers& answers) {
  return absl::StrJoin(answers, ", ", absl::PairFormatter(" "));
}

std::uint32_t number(const std::string& text) {
  std::uint32_t parsed = 0;
  SIGNALBOX_INVARIANT(absl::SimpleAtoi(text, &parsed), "a number: " + text);
  return parsed;
}

Duration duration(const std::string& text) {
  absl::Duration parsed;
  std::string short_form = text;
  if (absl::EndsWith(text, "min")) short_form.resize(text.size() - 2);
  if (!absl::ParseDuration(short_form, &parsed)) return Duration::zero();
  return absl::ToChronoNanoseconds(parsed);
}

/// Shortens a start or stop line: "m/orders/child/primary" becomes "orders/primary". Returns false
/// for a line about a policy that every tree has; such a line is left out.
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

Scenario::Words Scenario::run(const std::string& command) {
  const Words words = absl::StrSplit(command, ' ', absl::SkipEmpty());
  Words answer = do_command(words);
  Words lines;
  for (std::string& line : tree_.take_log()) {
    if (shorten(line)) lines.push_back(std::move(line));
  }
  lines.insert(lines.end(), answer.begin(), answer.end());
  return lines;
}

Scenario::Words Scenario::do_command(const Words& words) {
  const std::string& verb = words.at(0);
  const std::string name = words.size() > 1 ? words[1] : "";
  if (verb == "pick") {
    return {absl::StrCat(name, " -> ", absl::StrJoin(tree_.reached(name), " "))};
  }
  if (verb == "share") return {absl::StrCat(name, " -> ", share(name))};
  if (verb == "visit") return {absl::StrCat(name, " -> ", visits(words))};
  if (verb == "users") return {absl::StrCat(name, " -> ", users(words))};
  if (verb == "call" || verb == "hold")
    return {absl::StrCat(name, " -> ", calls(words, verb == "hold"))};
  if (verb == "policy" && policy(words.at(2)) == nullptr) return {"unknown policy: " + words[2]};
  if (do_cluster(words) || do_world(words)) return {};
  return {"unknown command: " + verb};
}

// Runs a command that changes the control plane's configuration; false: it is no such command.
bool Scenario::do_cluster(const Words& words) {
  const std::string& verb = words[0];
  const std::string name = words.size() > 1 ? words[1] : "";
  if (verb == "policy") {
    policies_[name] = policy(words.at(2));
  } else if (verb == "limit") {
    extras_[name].max_concurrent_requests = number(words.at(2));
  } else if (verb == "drop") {
    extras_[name].drops.push_back({words.at(2), number(words.at(3)) * 10'000});
  } else if (verb == "detect") {
    auto& settings = extras_[name].outlier_detection.emplace();
    settings.max_ejection_percent = 50;
    settings.failure_percentage = OutlierDetection::FailurePercentage{50, 100, 3, 10};
  } else if (verb == "idle") {
    extras_[name].idle_timeout = duration(words.at(2));
  } else if (verb == "keep") {
    extras_[name].override_host_status.insert(HealthStatus::kDraining);
  } else if (verb == "standby") {
    tree_.options().standby_priorities = number(name);
  } else if (verb == "sessions") {
    world_.sessions(name == "on");
  } else if (verb == "eds") {
    const auto found = policies_.find(name);
    world_.eds(name,
               priorities(tail(words, 2)),
               found == policies_.end() ? default_lb_policy() : found->second,
               extras_[name]);
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
  } else {
    return false;
  }
  return true;
}

// Runs a command about the network, held calls or the clock; false: it is no such command.
bool Scenario::do_world(const Words& words) {
  const std::string& verb = words[0];
  const Words addresses = tail(words, 1);
  if (verb == "up") {
    for (const std::string& address : addresses)
      tree_.up(address);
  } else if (verb == "down") {
    for (const std::string& address : addresses)
      tree_.down(address);
  } else if (verb == "ends") {
    for (const std::string& address : addresses)
      tree_.end_at_once(address);
  } else if (verb == "bad" || verb == "good") {
    for (const std::string& address : addresses)
      tree_.answer_badly(address, verb == "bad");
  } else if (verb == "advance") {
    tree_.advance(duration(words.at(1)));
  } else if (verb == "end") {
    for (TreeHarness::Call& call : held_)
      TreeHarness::end(call);
    held_.clear();
  } else {
    return false;
  }
  return true;
}

std::string Scenario::share(const std::string& cluster) {
  Answers answers;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    ++answers[short_form(tree_.pick(cluster, seed))];
  return to_text(answers);
}

std::string Scenario::users(const Words& words) {
  Words homes;
  for (const std::string& user : tail(words, 2)) {
    const std::string answer = tree_.pick(words[1], ++calls_, lb::xx_hash(user));
    homes.push_back(absl::StrCat(user, " ", short_form(answer)));
  }
  return absl::StrJoin(homes, ", ");
}

std::string Scenario::visits(const Words& words) {
  Words homes;
  for (const std::string& user : tail(words, 2)) {
    const std::string answer = tree_.visit(words[1], cookies_[user], ++calls_);
    homes.push_back(absl::StrCat(user, " ", short_form(answer)));
  }
  return absl::StrJoin(homes, ", ");
}

std::string Scenario::calls(const Words& words, bool held) {
  Answers answers;
  for (std::uint32_t left = number(words.at(2)); left > 0; --left) {
    TreeHarness::Call call = tree_.begin(words[1], ++calls_);
    ++answers[short_form(call.answer)];
    held ? held_.push_back(std::move(call)) : TreeHarness::end(call);
  }
  return to_text(answers);
}

void Scenario::apply(const Words& words) {
  const auto retiring = std::ranges::find(words, "retiring");
  const Words routed(words.begin(), retiring);
  const Words old = retiring == words.end() ? Words{} : Words(std::next(retiring), words.end());
  tree_.apply(manager_of(routed, old), world_.config());
}

}  // namespace signalbox::test
