// SPDX-License-Identifier: Apache-2.0
//
// Transcript — a text of commands and their expected results.
//
//   # a comment, kept
//   command        ┐
//   command        ├ one step
//   ----           │
//   expected lines ┘
//                    an empty line ends the step

#pragma once

#include <functional>
#include <string>
#include <vector>

namespace signalbox::test {

struct TranscriptStep {
  std::vector<std::string> comments;
  std::vector<std::string> commands;
  std::vector<std::string> expected;
};

std::vector<TranscriptStep> parse_transcript(const std::string& text);

std::string to_text(const std::vector<TranscriptStep>& steps);

}  // namespace signalbox::test
