// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/cluster_manager_picker.hpp"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace signalbox::lb {
namespace {

PickResult dropped(absl::Status status) {
  PickResult result;
  result.outcome = Drop{std::move(status)};
  return result;
}

class ClusterPicker final : public Picker {
 public:
  explicit ClusterPicker(ClusterTable table) : table_(std::move(table)) {}

  PickResult pick(const PickArgs& args) const override {
    const Picker* picker = args.cluster == nullptr ? nullptr : table_.find(*args.cluster);
    if (picker != nullptr) return picker->pick(args);
    return dropped(absl::InternalError(absl::StrCat(
        "no such cluster: ", args.cluster == nullptr ? "(none)" : args.cluster->str())));
  }

 private:
  ClusterTable table_;
};

class RetiringPicker final : public Picker {
 public:
  RetiringPicker(const ClusterName& cluster, PickerPtr picker, bool may_queue)
      : cluster_(cluster), picker_(std::move(picker)), may_queue_(may_queue) {}

  PickResult pick(const PickArgs& args) const override {
    PickResult result = picker_->pick(args);
    if (const auto* fail = std::get_if<Fail>(&result.outcome)) {
      return dropped(gone(fail->status.message()));
    }
    if (std::holds_alternative<Queue>(result.outcome) && !may_queue_) {
      return dropped(gone("it has no endpoint that could take the call"));
    }
    return result;
  }

 private:
  absl::Status gone(absl::string_view why) const {
    return absl::UnavailableError(
        absl::StrCat("cluster ", cluster_.str(), " is no longer routed to: ", why));
  }

  ClusterName cluster_;
  PickerPtr picker_;
  bool may_queue_;
};

}  // namespace

ClusterTable::ClusterTable() : directory_(std::make_shared<const Directory>()) {}

ClusterTable::ClusterTable(const Changes& entries) {
  auto directory = std::make_shared<Directory>();
  directory->reserve(entries.size());
  std::vector<std::shared_ptr<Chunk>> chunks((entries.size() + kChunk - 1) / kChunk);
  for (auto& chunk : chunks)
    chunk = std::make_shared<Chunk>();
  std::uint32_t place = 0;
  for (const auto& [cluster, picker] : entries) {
    directory->emplace(cluster, place);
    (*chunks[place / kChunk])[place % kChunk] = picker;
    ++place;
  }
  directory_ = std::move(directory);
  chunks_.assign(chunks.begin(), chunks.end());
}

ClusterTable ClusterTable::with(const Changes& changes) const {
  ClusterTable next = *this;
  std::map<std::size_t, std::shared_ptr<Chunk>> copied;
  for (const auto& [cluster, picker] : changes) {
    const auto found = directory_->find(cluster);
    if (found == directory_->end()) continue;
    const std::size_t chunk = found->second / kChunk;
    auto& copy = copied[chunk];
    if (copy == nullptr) {
      copy = std::make_shared<Chunk>(*chunks_[chunk]);
      next.chunks_[chunk] = copy;
    }
    (*copy)[found->second % kChunk] = picker;
  }
  return next;
}

const Picker* ClusterTable::find(const ClusterName& cluster) const {
  const auto found = directory_->find(cluster);
  if (found == directory_->end()) return nullptr;
  return (*chunks_[found->second / kChunk])[found->second % kChunk].get();
}

PickerPtr make_cluster_picker(ClusterTable table) {
  return std::make_shared<const ClusterPicker>(std::move(table));
}

PickerPtr make_retiring_picker(const ClusterName& cluster, PickerPtr picker, bool may_queue) {
  return std::make_shared<const RetiringPicker>(cluster, std::move(picker), may_queue);
}

}  // namespace signalbox::lb
