// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/maglev.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/leaf/maglev_table.hpp"
#include "lb/leaf/petiole.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

using TablePtr = std::shared_ptr<const MaglevTable>;

// The most slots that a pick looks at.
constexpr std::uint32_t kMostSlots = 256;

class MaglevPicker final : public Picker {
 public:
  // The items of `table` are `members`, in the same order. Precondition: at least one member that
  // counts (EndpointSet::let_count()) is READY.
  MaglevPicker(TablePtr table, const EndpointSet& members)
      : table_(std::move(table)), ready_(members.ready()) {
    places_.reserve(members.size());
    std::uint32_t ready = 0;
    for (std::size_t at = 0; at < members.size(); ++at) {
      const EndpointSet::Member& member = members[at];
      const bool is_ready = member.state == ConnectivityState::kReady && member.counts;
      const bool has_failed = member.state == ConnectivityState::kTransientFailure;
      places_.push_back(is_ready ? ready++ : has_failed ? kFailed : kConnecting);
    }
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  // Values in places_ for an endpoint that is not READY: it failed, or it is being connected.
  static constexpr std::uint32_t kFailed = UINT32_MAX;
  static constexpr std::uint32_t kConnecting = UINT32_MAX - 1;

  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    const bool by_chance = !args.hash.has_value();
    const std::uint64_t hash = by_chance ? draw(args.seed, Salt::kRequestHash) : *args.hash;
    std::uint32_t slot = table_->find(hash);
    sink.tell([&] {
      return PickStep{"maglev",
                      absl::StrCat("begins at slot ", slot, " of ", table_->size()),
                      absl::StrCat("the call's hash is ",
                                   hash,
                                   by_chance ? ", by chance: nothing of it is hashed"
                                             : ", by the hash policies of its route"),
                      "CDS"};
    });
    const std::uint32_t most = std::min(kMostSlots, table_->size());
    for (std::uint32_t passed = 0; passed < most; ++passed) {
      const std::uint32_t place = places_[table_->item(slot)];
      slot = slot + 1 == table_->size() ? 0 : slot + 1;
      if (place < ready_.size()) {
        return complete(place, sink, [&] {
          return absl::StrCat("the first READY one from there; ", passed, " slots were passed");
        });
      }
      if (place == kFailed || by_chance) continue;
      sink.tell([&] {
        return PickStep{"maglev", "the call waits", "where it belongs is being connected", "CDS"};
      });
      return {};
    }
    return complete(draw_below(hash, Salt::kEndpoint, ready_.size()), sink, [&] {
      return absl::StrCat("none of ", most, " slots is READY; chosen by hash among all READY ones");
    });
  }

  template <typename Sink, typename Reason>
  PickResult complete(std::size_t place, const Sink& sink, const Reason& reason) const {
    sink.tell([&] { return PickStep{"maglev", shown(ready_[place]), reason(), "CDS"}; });
    PickResult result;
    result.outcome = ready_[place];
    return result;
  }

  TablePtr table_;
  std::vector<std::uint32_t> places_;  // By member: its index in ready_, or kFailed or kConnecting.
  ReadyEndpoints ready_;               // Never empty.
};

class Maglev final : public Petiole {
 public:
  explicit Maglev(PolicyContext context)
      : Petiole("maglev", std::move(context), EndpointSet::Connects::kAtOnce) {}

 private:
  bool configure(const ConfigUpdated& update) override {
    const std::uint32_t size = config_of<MaglevConfig>(update).table_size;
    if (std::exchange(size_, size) == size) return false;
    table_ = nullptr;
    return true;
  }

  // Makes a new table only if the list, a field of an endpoint or locality, or the size has changed
  // (I1 of maglev.hpp).
  void endpoints_taken(const ConfigUpdated& update, const EndpointSet::Changes& changes) override {
    if (table_ != nullptr && !changes.list) return;
    table_ = std::make_shared<const MaglevTable>(
        hash_items(
            endpoints(),
            update.endpoints,
            context().options.weighted_shuffling ? WeightRule::kShare : WeightRule::kProduct),
        size_);
    for (std::size_t at = 0; at < endpoints().size(); ++at)
      endpoints().let_count(at, table_->has_slot(at));  // Without a slot, no pick reaches it (I2).
  }

  // If an endpoint has become READY, its calls may wait or go to other endpoints a little longer,
  // so the new picker may wait.
  PickerPace::Need need_of(const EndpointSet::Changes& changes) const override {
    if (changes.list) return PickerPace::Need::kNow;
    const auto least = changes.states ? PickerPace::Need::kMayWait : PickerPace::Need::kNone;
    return std::max(least, Petiole::need_of(changes));
  }

  PickerPtr make_picker() override {
    if (state() == ConnectivityState::kConnecting) return make_queue_picker();
    if (state() == ConnectivityState::kTransientFailure) return make_fail_picker(failure());
    return std::make_shared<const MaglevPicker>(table_, endpoints());
  }

  std::uint32_t size_ = 0;
  TablePtr table_;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const MaglevConfig& /*config*/, PolicyContext context) {
  return std::make_unique<Maglev>(std::move(context));
}

}  // namespace signalbox::lb
