// SPDX-License-Identifier: Apache-2.0
#include "channel/target_table.hpp"

namespace signalbox::channel {

std::shared_ptr<Target> TargetTable::find_or_make(const std::string& name, Make make) {
  const std::lock_guard lock(mutex_);
  std::erase_if(targets_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Target>& known = targets_[name];
  if (auto existing = known.lock()) return existing;
  auto fresh = make();
  known = fresh;
  ready_.add({name, fresh, fresh->board()->ready_flag()});
  return fresh;
}

std::vector<std::pair<std::string, std::shared_ptr<Target>>> TargetTable::in_use() const {
  std::vector<std::pair<std::string, std::shared_ptr<Target>>> in_use;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, known] : targets_) {
    if (auto target = known.lock()) in_use.emplace_back(name, std::move(target));
  }
  return in_use;
}

std::optional<bool> TargetTable::ready(absl::string_view name) const {
  bool all = true;
  std::optional<bool> one;
  ready_.each([&](const std::string& target, bool is_ready) {
    if (target == name) one = is_ready;
    all = all && is_ready;
  });
  return name.empty() ? std::optional(all) : one;
}

std::map<std::string, bool> TargetTable::readiness() const {
  std::map<std::string, bool> all;
  ready_.each([&](const std::string& target, bool is_ready) { all[target] = is_ready; });
  return all;
}

}  // namespace signalbox::channel
