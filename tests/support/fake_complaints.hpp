// SPDX-License-Identifier: Apache-2.0
//
// FakeComplaints — collects the invariants that turned out to be broken, each as a sentence. Fakes
// cannot throw through actors and destructors, so they record a broken invariant here. The
// simulation looks for complaints after each step.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace signalbox::testing {

class FakeComplaints {
 public:
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  /// Records `sentence` as broken unless `holds`. `but` says what was found.
  void require(bool holds, const char* sentence, const std::string& but = "") {
    if (!holds) add(but.empty() ? sentence : std::string(sentence) + " — but " + but);
  }

  bool empty() const { return sentences_.empty(); }

  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  std::vector<std::string> sentences_;
};

}  // namespace signalbox::testing
