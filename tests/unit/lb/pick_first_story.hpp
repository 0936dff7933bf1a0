// SPDX-License-Identifier: Apache-2.0
//
// Story — a PickFirst, its events in words, and their effects in words.
//
//   check({"update a b -> acquire a, acquire b", "idle a -> ", …})

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>

#include "lb/leaf/pick_first_core.hpp"
#include "tests/support/policy_harness.hpp"

namespace signalbox::test {

/// The report that a word means: "idle", "connecting", "failed", "ready", "unhealthy".
inline SubchannelStateChanged change_of(const std::string& word, const std::string& address) {
  SubchannelStateChanged change;
  change.address = Address(address);
  if (word == "connecting") change.state = kConnecting;
  if (word == "failed") {
    change.state = kFailure;
    change.status = absl::UnavailableError("refused");
  }
  if (word == "ready" || word == "unhealthy") {
    change.state = kReady;
    change.connection = std::make_shared<const Connection>(change.address);
  }
  if (word == "unhealthy") {
    change.healthy = false;
    change.status = absl::UnavailableError("ejected");
  }
  return change;
}

/// A PickFirst that gets events in words: "update a b", "idle a", "time", "late", "wake".
class Story {
 public:
  explicit Story(lb::PickFirst first) : first_(std::move(first)) {}

  /// The effects of the event, then the state if it changed.
  std::string tell(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const ConnectivityState before = first_.state();
    LbEffects effects;
    if (words[0] == "update") {
      first_.update({words.begin() + 1, words.end()}, effects);
    } else if (words[0] == "wake") {
      first_.exit_idle(effects);
    } else if (words[0] == "stop") {
      first_.release_all(effects);
    } else if (words[0] == "time") {  // The delay that began last is over.
      first_.fire(timers_.back(), effects);
    } else if (words[0] == "late") {  // The first delay is over.
      first_.fire(timers_.front(), effects);
    } else {
      first_.observe(change_of(words[0], words[1]), effects);
    }
    std::vector<std::string> texts;
    for (const LbEffect& effect : effects) {
      texts.push_back(to_text(effect));
      if (const auto* start = std::get_if<StartTimer>(&effect)) timers_.push_back(start->timer);
    }
    if (first_.state() != before) texts.emplace_back(to_string(first_.state()));
    return absl::StrJoin(texts, ", ");
  }

  const lb::PickFirst& first() const { return first_; }

  const std::vector<TimerId>& timers() const { return timers_; }

 private:
  lb::PickFirst first_;
  std::vector<TimerId> timers_;
};

/// Each line is "event -> its effects, the new state".
inline void check(Story& story, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits("->", 1));
    INFO(line);
    CHECK(story.tell(parts[0]) == std::string(absl::StripAsciiWhitespace(parts[1])));
  }
}

inline void check(const std::vector<std::string>& lines) {
  Story story{lb::PickFirst(lb::PickFirst::WhenLost::kGoIdle)};
  check(story, lines);
}

}  // namespace signalbox::test
