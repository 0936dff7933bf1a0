// SPDX-License-Identifier: Apache-2.0
#include "tests/orders/post.hpp"

namespace signalbox::orders {

ActorId Post::group_of(ActorId actor) const {
  if (actor == kChannel || actor == kRoot) return actor;
  if (mailboxes_ == Mailboxes::kRoot) return kRoot;
  const std::size_t cluster = cluster_of(actor);
  if (actor == cds_of(cluster) || mailboxes_ == Mailboxes::kAll) return actor;
  return mailboxes_ == Mailboxes::kCds ? cds_of(cluster) : leaf_of(cluster);
}

// Channel and root merge the reports of a burst, so their letters to themselves wait.
void Post::send(Letter letter) {
  const bool ends_burst = letter.from == letter.to && letter.to <= kRoot;
  if (!ends_burst && group_of(letter.from) == group_of(letter.to)) {
    at_once_.push_back(std::move(letter));
  } else {
    queues_[{letter.from, letter.to}].push_back(std::move(letter));
  }
}

std::vector<Post::Pair> Post::pairs() const {
  std::vector<Pair> pairs;
  pairs.reserve(queues_.size());
  for (const auto& [pair, letters] : queues_)
    pairs.push_back(pair);
  return pairs;
}

Letter Post::take(const Pair& pair) {
  const auto found = queues_.find(pair);
  Letter letter = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return letter;
}

std::optional<Letter> Post::take_at_once() {
  if (at_once_.empty()) return std::nullopt;
  Letter letter = std::move(at_once_.front());
  at_once_.pop_front();
  return letter;
}

void Post::drop_cluster(std::size_t cluster) {
  const auto is_of_it = [&](ActorId actor) {
    return actor >= cds_of(cluster) && actor <= map_of(cluster);
  };
  std::erase_if(queues_, [&](const auto& entry) {
    return is_of_it(entry.first.first) || is_of_it(entry.first.second);
  });
  std::erase_if(at_once_,
                [&](const Letter& letter) { return is_of_it(letter.from) || is_of_it(letter.to); });
}

}  // namespace signalbox::orders
