// SPDX-License-Identifier: Apache-2.0
//
// FakeComplaints — the sentences that turned out to be untrue. Fakes cannot throw through actors
// and destructors, so they complain here. The owner of the world looks for complaints after each
// step.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace signalbox::testing {

class FakeComplaints {
 public:
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  /// Complains unless `holds`.
  void require(bool holds, const char* sentence, const std::string& but = "") {
    if (!holds) add(but.empty() ? sentence : std::string(sentence) + " — but " + but);
  }

  bool empty() const { return sentences_.empty(); }

  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  std::vector<std::string> sentences_;
};

}  // namespace signalbox::testing
