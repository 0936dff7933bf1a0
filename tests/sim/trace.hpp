// SPDX-License-Identifier: Apache-2.0
//
// Trace — a seed's events, as one hash and as the last lines of the story.
//
// Every step is mixed into the hash (FNV-1a). Lines are kept for a story that fails, or printed as
// they come. Nothing that differs between processes may enter the hash: no addresses, no hash
// order, no clock but the virtual one.

#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <string>

#include "absl/strings/string_view.h"

#include "messages/ids.hpp"

namespace signalbox::sim {

class Trace {
 public:
  /// `out`: each line is written to it at once; null: only the last lines are kept.
  Trace(Instant start, std::ostream* out) : start_(start), out_(out) {}

  void note(Instant now, absl::string_view who, absl::string_view what, std::uint64_t detail = 0);

  std::uint64_t hash() const { return hash_; }

  std::uint64_t steps() const { return steps_; }

  void print_last(std::ostream& out) const;

 private:
  struct Line {
    Instant when;
    std::string who;
    std::string what;
    std::uint64_t detail = 0;
  };

  static constexpr std::size_t kKept = 80;

  void print(const Line& line, std::ostream& out) const;
  void mix(absl::string_view text);
  void mix(std::uint64_t number);

  Instant start_;
  std::ostream* out_;
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::uint64_t steps_ = 0;
  std::deque<Line> last_;
};

}  // namespace signalbox::sim
