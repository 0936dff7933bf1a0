// SPDX-License-Identifier: Apache-2.0
#include "actors/log.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::actors {

std::optional<std::uint64_t> LogLimit::admit(LogKind kind, Instant now) {
  Kind& one = kinds_[static_cast<std::size_t>(kind)];
  one.used = std::max(one.used - (now - std::exchange(one.at, now)), Duration::zero());
  if (one.used + kEvery > kBurst * kEvery) {
    ++one.left_out;
    return std::nullopt;
  }
  one.used += kEvery;
  return std::exchange(one.left_out, 0);
}

Log::Log(LogLevel level, Sink sink, Clock now)
    : level_(level), sink_(std::move(sink)), now_(std::move(now)) {}

void Log::write(LogLine line) {
  if (line.level < level_) return;
  {
    const std::lock_guard lock(mutex_);
    const auto left_out = limit_.admit(line.kind, now_());
    if (!left_out) return;
    line.left_out = *left_out;
  }
  line.text = one_line(line.text);
  sink_(line);
}

}  // namespace signalbox::actors
