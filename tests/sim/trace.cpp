// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/trace.hpp"

#include <iomanip>
#include <ostream>

namespace signalbox::sim {

void Trace::note(Instant now, absl::string_view who, absl::string_view what, std::uint64_t detail) {
  ++steps_;
  mix(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  mix(who);
  mix(what);
  mix(detail);
  if (last_.size() == kKept) last_.pop_front();
  last_.push_back({now, std::string(who), std::string(what), detail});
  if (out_ != nullptr) print(last_.back(), *out_);
}

void Trace::print_last(std::ostream& out) const {
  for (const Line& line : last_)
    print(line, out);
}

void Trace::print(const Line& line, std::ostream& out) const {
  const auto since = std::chrono::duration<double>(line.when - start_).count();
  out << std::fixed << std::setprecision(6) << std::setw(14) << since << "  " << line.who << "  "
      << line.what << "  " << line.detail << '\n';
}

void Trace::mix(absl::string_view text) {
  for (const char c : text)
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
}

void Trace::mix(std::uint64_t number) {
  for (int i = 0; i < 8; ++i)
    hash_ = (hash_ ^ ((number >> (8 * i)) & 0xffU)) * 0x100000001b3ULL;
}

}  // namespace signalbox::sim
