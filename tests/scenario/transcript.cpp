// SPDX-License-Identifier: Apache-2.0
#include "tests/scenario/transcript.hpp"

#include <sstream>
#include <utility>

namespace signalbox::test {

std::vector<TranscriptStep> parse_transcript(const std::string& text) {
  std::vector<TranscriptStep> steps;
  TranscriptStep step;
  bool answering = false;
  const auto finish = [&] {
    if (!step.commands.empty() || !step.comments.empty()) steps.push_back(std::exchange(step, {}));
    answering = false;
  };
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      finish();
    } else if (line == "----") {
      answering = true;
    } else if (answering) {
      step.expected.push_back(line);
    } else if (line.front() == '#') {
      step.comments.push_back(line);
    } else {
      step.commands.push_back(line);
    }
  }
  finish();
  return steps;
}

std::string to_text(const std::vector<TranscriptStep>& steps) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      text += line + "\n";
  };
  for (const TranscriptStep& step : steps) {
    if (!text.empty()) text += "\n";
    add(step.comments);
    add(step.commands);
    if (!step.commands.empty()) text += "----\n";
    add(step.expected);
  }
  return text;
}

}  // namespace signalbox::test
