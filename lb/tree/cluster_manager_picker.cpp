// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_manager_picker.hpp"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

#include "messages/counting/striped.hpp"

namespace signalbox::lb {
namespace {

PickResult dropped(absl::Status status) {
  PickResult result;
  result.outcome = Drop{std::move(status)};
  return result;
}

// A pick reads all members: they are on one cache line.
class alignas(kCacheLine) ClusterPicker final : public Picker {
 public:
  explicit ClusterPicker(ClusterTable table) : table_(std::move(table)) {}

  const SessionHint* session_hint() const override { return table_.session_hint(); }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    const ChildPicker* picker =
        args.cluster == nullptr ? nullptr : table_.find(*args.cluster, args.cluster_place);
    if (picker != nullptr) return picker->ask(args, sink);
    return dropped(absl::InternalError(absl::StrCat(
        "no such cluster: ", args.cluster == nullptr ? "(none)" : args.cluster->str())));
  }

  ClusterTable table_;
};

class RetiringPicker final : public Picker {
 public:
  RetiringPicker(const ClusterName& cluster, PickerPtr picker)
      : cluster_(cluster), picker_(std::move(picker)) {}

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    trace.tell({"cluster_manager",
                "cluster " + cluster_.str() + " is retiring",
                "no route names it any more; only calls that chose it before still may use it",
                ""});
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    PickResult result = picker_.ask(args, sink);
    const auto* fail = std::get_if<Fail>(&result.outcome);
    if (fail == nullptr) return result;
    return dropped(absl::UnavailableError(absl::StrCat(
        "cluster ", cluster_.str(), " is no longer routed to: ", fail->status.message())));
  }

  ClusterName cluster_;
  ChildPicker picker_;
};

}  // namespace

ClusterTable::ClusterTable(Changes entries) : size_(entries.size()) {
  std::ranges::sort(entries, {}, &Changes::value_type::first);
  for (std::size_t begin = 0; begin < size_; begin += kChunk) {
    auto chunk = std::make_shared<Chunk>();
    const std::size_t length = std::min(kChunk, size_ - begin);
    for (std::size_t i = 0; i < length; ++i) {
      auto& [cluster, picker] = entries[begin + i];
      (*chunk)[i] = {std::move(cluster), ChildPicker(std::move(picker))};
    }
    chunks_.push_back(std::move(chunk));
  }
}

ClusterTable ClusterTable::with(const Changes& changes) const {
  ClusterTable next = *this;
  std::map<std::size_t, std::shared_ptr<Chunk>> copied;
  for (const auto& [cluster, picker] : changes) {
    const std::size_t place = place_of(cluster);
    if (place == size_) continue;
    auto& copy = copied[place / kChunk];
    if (copy == nullptr) {
      copy = std::make_shared<Chunk>(*chunks_[place / kChunk]);
      next.chunks_[place / kChunk] = copy;
    }
    (*copy)[place % kChunk].second = ChildPicker(picker);
  }
  return next;
}

const ChildPicker* ClusterTable::find(const ClusterName& cluster, std::size_t place) const {
  if (place >= size_ || at(place).first != cluster) place = place_of(cluster);
  return place < size_ ? &at(place).second : nullptr;
}

const SessionHint* ClusterTable::session_hint() const {
  const SessionHint* known = nullptr;
  if (size_ > kMostWithHint) return known;
  for (std::size_t place = 0; place < size_; ++place) {
    const SessionHint* const hint = at(place).second.session_hint();
    if (known != nullptr && hint != nullptr) return nullptr;
    if (hint != nullptr) known = hint;
  }
  return known;
}

std::size_t ClusterTable::place_of(const ClusterName& cluster) const {
  std::size_t begin = 0;
  std::size_t end = size_;
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (at(middle).first < cluster) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin < size_ && at(begin).first == cluster ? begin : size_;
}

PickerPtr make_cluster_picker(ClusterTable table) {
  return std::make_shared<const ClusterPicker>(std::move(table));
}

PickerPtr make_retiring_picker(const ClusterName& cluster, PickerPtr picker) {
  return std::make_shared<const RetiringPicker>(cluster, std::move(picker));
}

}  // namespace signalbox::lb
