// SPDX-License-Identifier: Apache-2.0
//
// Trace — the events of one seed's world, as a hash of all events and as text lines.
//
// Every step changes the hash (FNV-1a). The last lines are kept, to be printed if the seed fails;
// or all lines are printed at once. The hash must be equal in every process, so nothing enters it
// that differs: no pointers, no order of hash tables, no real time.

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
