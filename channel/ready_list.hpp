// SPDX-License-Identifier: Apache-2.0
//
// ReadyList — which targets are ready, for readers that must never wait.
//
//   TargetTable ─▶ add() ─▶ [block of entries] ◀─ each() ◀─ /ready, gRPC's health service
//   channel actor ─▶ TargetBoard ─▶ an atomic of each entry ─┘
//
// Readers take no lock. add() fills the next entry of a block and then publishes the new size. A
// full block is replaced by one without the entries of targets that are gone, and with room for as
// many more. So adding n targets copies O(n) entries in all, and at most half of a full block is
// about targets that are gone.
//
// Invariants
//   R1  An entry below a block's size never changes.
//   R2  A replaced block is destroyed only after a moment without readers: a reader counts itself
//       before it reads `block_`, and add() reads the count after it has replaced `block_`.

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace signalbox::channel {

class ReadyList {
 public:
  struct Entry {
    std::string name;
    /// The target; it is gone when the pointer has expired. Never locked: a reader that became the
    /// last owner would have to end the target.
    std::weak_ptr<const void> target;
    std::shared_ptr<const std::atomic<bool>> is_ready;
  };

  ReadyList();

  /// Not for two threads at a time.
  void add(Entry entry);

  /// Calls visit(name, is_ready) for each target that is not gone. `visit` must not throw.
  template <typename Visit>
  void each(const Visit& visit) const {
    readers_.fetch_add(1);
    const Block& block = *block_.load();
    const std::size_t size = block.size.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < size; ++i) {
      const Entry& entry = block.entries[i];
      if (!entry.target.expired())
        visit(entry.name, entry.is_ready->load(std::memory_order_acquire));
    }
    readers_.fetch_sub(1);
  }

 private:
  static constexpr std::size_t kSmallest = 16;

  struct Block {
    explicit Block(std::size_t room) : entries(room) {}

    std::vector<Entry> entries;
    std::atomic<std::size_t> size{0};
  };

  void replace_block();

  std::unique_ptr<Block> newest_ = std::make_unique<Block>(kSmallest);
  std::vector<std::unique_ptr<Block>> replaced_;  // They wait for a moment without readers.
  std::atomic<const Block*> block_;               // newest_, for the readers.
  mutable std::atomic<std::size_t> readers_{0};
};

}  // namespace signalbox::channel
