// SPDX-License-Identifier: Apache-2.0
#include "channel/ready_list.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::channel {

ReadyList::ReadyList() : block_(newest_.get()) {}

void ReadyList::add(Entry entry) {
  if (newest_->size == newest_->entries.size()) replace_block();
  const std::size_t size = newest_->size;
  newest_->entries[size] = std::move(entry);
  newest_->size.store(size + 1, std::memory_order_release);
}

void ReadyList::replace_block() {
  const auto is_used = [](const Entry& entry) { return !entry.target.expired(); };
  const auto used = static_cast<std::size_t>(std::ranges::count_if(newest_->entries, is_used));
  auto next = std::make_unique<Block>(std::max(kSmallest, 2 * used));
  std::size_t size = 0;
  for (const Entry& entry : newest_->entries) {
    // A target never comes back, so at most `used` entries are copied.
    if (is_used(entry)) next->entries[size++] = entry;
  }
  next->size = size;
  block_.store(next.get());
  replaced_.push_back(std::exchange(newest_, std::move(next)));
  if (readers_.load() == 0) replaced_.clear();
}

}  // namespace signalbox::channel
