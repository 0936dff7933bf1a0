// SPDX-License-Identifier: Apache-2.0
//
// signalbox_scenario_test [--rewrite] DIRECTORY — plays every transcript (*.txt) of the directory.
// Compares the results with the expected lines. With --rewrite, also replaces the expected lines,
// and a difference is no failure.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scenario/scenario.hpp"
#include "tests/scenario/transcript.hpp"

namespace {

using signalbox::test::Scenario;
using signalbox::test::TranscriptStep;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void print(const char* title, const std::vector<std::string>& lines) {
  std::cout << "  " << title << ":\n";
  for (const std::string& line : lines)
    std::cout << "    " << line << "\n";
}

/// Plays the steps and stores the outcome in each step. Returns false if an outcome differs from
/// the expected one.
bool play(const std::string& name, std::vector<TranscriptStep>& steps) {
  Scenario scenario;
  bool same = true;
  for (TranscriptStep& step : steps) {
    std::vector<std::string> lines;
    for (const std::string& command : step.commands) {
      for (const std::string& line : scenario.run(command))
        lines.push_back(line);
    }
    if (lines != step.expected) {
      same = false;
      std::cout << name << ": another outcome\n";
      print("commands", step.commands);
      print("expected", step.expected);
      print("came", lines);
    }
    step.expected = lines;
  }
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool rewrite = std::ranges::count(arguments, "--rewrite") != 0;
  if (arguments.empty() || arguments.back() == "--rewrite") {
    std::cerr << "usage: signalbox_scenario_test [--rewrite] DIRECTORY\n";
    return 2;
  }
  std::vector<std::filesystem::path> transcripts;
  for (const auto& entry : std::filesystem::directory_iterator(arguments.back())) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") {
      transcripts.push_back(entry.path());
    }
  }
  std::ranges::sort(transcripts);
  int different = 0;
  for (const auto& path : transcripts) {
    auto steps = signalbox::test::parse_transcript(read(path));
    if (!play(path.filename().string(), steps)) ++different;
    if (rewrite) std::ofstream(path) << signalbox::test::to_text(steps);
  }
  std::cout << transcripts.size() << " transcripts, " << different << " with another outcome\n";
  return transcripts.empty() || (different != 0 && !rewrite) ? 1 : 0;
}
