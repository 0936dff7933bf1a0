// SPDX-License-Identifier: Apache-2.0
#include "channel/target_table.hpp"

namespace signalbox::channel {

std::shared_ptr<Target> TargetTable::find_or_make(const std::string& name, Make make) {
  const std::lock_guard one_at_a_time(making_);
  if (auto existing = find(name)) return existing;
  auto fresh = make();
  const std::lock_guard lock(mutex_);
  targets_[name] = {fresh, fresh->board()->ready_flag()};
  return fresh;
}

// The target of this name; null: it is not in use. Also drops the entries of targets that are no
// longer in use.
std::shared_ptr<Target> TargetTable::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::erase_if(targets_, [](const auto& entry) { return entry.second.target.expired(); });
  const auto known = targets_.find(name);
  return known == targets_.end() ? nullptr : known->second.target.lock();
}

std::vector<std::pair<std::string, std::shared_ptr<Target>>> TargetTable::in_use() const {
  std::vector<std::pair<std::string, std::shared_ptr<Target>>> in_use;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, known] : targets_) {
    if (auto target = known.target.lock()) in_use.emplace_back(name, std::move(target));
  }
  return in_use;
}

std::optional<bool> TargetTable::ready(absl::string_view name) const {
  bool all = true;
  std::optional<bool> one;
  for (const auto& [target, is_ready] : readiness()) {
    if (target == name) one = is_ready;
    all = all && is_ready;
  }
  return name.empty() ? std::optional(all) : one;
}

std::map<std::string, bool> TargetTable::readiness() const {
  std::map<std::string, bool> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, known] : targets_) {
    if (!known.target.expired()) all.emplace(name, known.is_ready->load(std::memory_order_acquire));
  }
  return all;
}

}  // namespace signalbox::channel
