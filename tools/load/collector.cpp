// SPDX-License-Identifier: Apache-2.0
#include "tools/load/collector.hpp"

#include <limits>
#include <utility>

namespace signalbox::tools {

void Collector::add(const std::vector<SentCall>& sent,
                    const std::vector<EndedCall>& ended,
                    std::vector<std::string> endpoints) {
  for (std::string& address : endpoints)
    recorder_.add_endpoint(std::move(address));
  for (const SentCall& call : sent)
    recorder_.sent(call);
  held_.insert(held_.end(), ended.begin(), ended.end());
}

void Collector::advance(std::int64_t now_ns) {
  record_until(now_ns - std::chrono::nanoseconds(kHold).count());
}

void Collector::flush() {
  record_until(std::numeric_limits<std::int64_t>::max());
}

void Collector::record_until(std::int64_t until_ns) {
  const auto act_comes_first = [this] {
    return !acts_.empty() && (held_.empty() || acts_.front().at_ns <= held_.front().ended_ns);
  };
  for (;;) {
    if (act_comes_first() && acts_.front().at_ns <= until_ns) {
      recorder_.act_began(acts_.front().at_ns, acts_.front().is_fault);
      acts_.pop_front();
    } else if (!held_.empty() && !act_comes_first() && held_.front().ended_ns <= until_ns) {
      recorder_.ended(held_.front());
      held_.pop_front();
    } else {
      return;
    }
  }
}

}  // namespace signalbox::tools
