// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/load_counts.hpp"

#include <cmath>
#include <limits>
#include <new>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "messages/load_report.hpp"

namespace signalbox {
namespace {

constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();

// Returns the object that `slot` points to, and makes it if there is none. Only one of several
// threads stores its object. Null: no memory.
template <typename T>
T* made_once(std::atomic<T*>& slot) noexcept {
  if (T* known = slot.load(std::memory_order_acquire)) return known;
  std::unique_ptr<T> fresh(new (std::nothrow) T());
  if (fresh == nullptr) return nullptr;
  T* known = nullptr;
  if (slot.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel))
    return fresh.release();
  return known;
}

void add_in_stripe(std::atomic<double>& total, std::size_t stripe, double value) {
  if (stripe < kOwnStripes) {
    total.store(total.load(std::memory_order_relaxed) + value, std::memory_order_release);
    return;
  }
  double before = total.load(std::memory_order_relaxed);
  while (!total.compare_exchange_weak(before, before + value, std::memory_order_release)) {
  }
}

}  // namespace

MetricSum take_unreported(MetricSum& seen, const MetricSum& reported) {
  if (seen.calls == reported.calls) seen = reported;
  return {seen.calls - reported.calls, seen.total - reported.total};
}

LocalityCounts::~LocalityCounts() {
  for (const auto& block : blocks_)
    delete block.load(std::memory_order_acquire);
  const std::unique_ptr<const Names> names(names_.load(std::memory_order_acquire));
  if (names == nullptr) return;
  for (const auto& place : names->places)
    delete place.load(std::memory_order_acquire);
}

void LocalityCounts::add_utilization(Utilization which, double value) const noexcept {
  add_value(static_cast<std::size_t>(which), value);
}

void LocalityCounts::add_named(absl::string_view name, bool prefixed, double value) const noexcept {
  // A value that is not counted takes no place for its name.
  const std::size_t place = is_load_value(value) ? place_of(name, prefixed) : kNoPlace;
  if (place == kNoPlace) return calls_.add(kLost, 1);
  add_value(kUtilizations + place, value);
}

void LocalityCounts::add_value(std::size_t index, double value) const noexcept {
  const std::size_t stripe = this_thread_stripe();
  Block* const block = made_once(blocks_[stripe]);
  // The Pick API does not check the values of a report, so values that no report may have are left
  // out here. Sums must stay finite, because a report is a difference of two sums, and infinity
  // minus infinity is NaN. The factor leaves room to add up the sums of all stripes.
  if (block == nullptr || !is_load_value(value) ||
      !std::isfinite(block->values[index].total.load(std::memory_order_relaxed) * 32 + value * 32))
    return calls_.add(kLost, 1);
  add_in_stripe(block->values[index].total, stripe, value);
  signalbox::add_in_stripe(block->values[index].calls, stripe, 1);
}

std::size_t LocalityCounts::place_of(absl::string_view name, bool prefixed) const noexcept {
  Names* const names = made_once(names_);
  if (names == nullptr) return kNoPlace;
  const auto is_it = [&](const MetricName& known) {
    absl::string_view text = known.text;
    return known.prefixed == prefixed &&
           (!prefixed || absl::ConsumePrefix(&text, kNamedMetricPrefix)) && text == name;
  };
  std::unique_ptr<const MetricName> fresh;
  std::size_t place = absl::Hash<absl::string_view>()(name) % kPlaces;
  for (std::size_t looked = 0; looked < kPlaces; ++looked, place = (place + 1) % kPlaces) {
    const MetricName* known = names->places[place].load(std::memory_order_acquire);
    if (known == nullptr) {
      if (fresh == nullptr) {
        if (names->taken.fetch_add(1, std::memory_order_relaxed) >= kMostNames) {
          names->taken.fetch_sub(1, std::memory_order_relaxed);
          return kNoPlace;
        }
        fresh = std::make_unique<const MetricName>(MetricName{
            prefixed ? absl::StrCat(kNamedMetricPrefix, name) : std::string(name), prefixed});
      }
      const MetricName* const own = fresh.release();
      if (names->places[place].compare_exchange_strong(known, own, std::memory_order_acq_rel))
        return place;  // The table owns it now.
      fresh.reset(own);
    }
    if (!is_it(*known)) continue;
    if (fresh != nullptr) names->taken.fetch_sub(1, std::memory_order_relaxed);
    return place;
  }
  if (fresh != nullptr) names->taken.fetch_sub(1, std::memory_order_relaxed);
  return kNoPlace;
}

LocalityTotals LocalityCounts::totals() const {
  LocalityTotals totals;
  // The ends of calls are read before the beginnings. So the beginning of each counted end is
  // counted too, although calls go on meanwhile.
  totals.succeeded = calls_.sum(kSucceeded);
  totals.failed = calls_.sum(kFailed);
  totals.issued = calls_.sum(kIssued);
  totals.lost_values = calls_.sum(kLost);
  for (std::size_t index = 0; index < kUtilizations; ++index)
    totals.utilizations[index] = sum_of(index);
  const Names* const names = names_.load(std::memory_order_acquire);
  if (names == nullptr) return totals;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    const MetricName* const name = names->places[place].load(std::memory_order_acquire);
    if (name == nullptr) continue;
    const MetricSum sum = sum_of(kUtilizations + place);
    MetricSum& known = totals.named[name->text];
    known.calls += sum.calls;
    known.total += sum.total;
  }
  return totals;
}

MetricSum LocalityCounts::sum_of(std::size_t index) const {
  MetricSum sum;
  for (const auto& slot : blocks_) {
    const Block* const block = slot.load(std::memory_order_acquire);
    if (block == nullptr) continue;
    const Value& value = block->values[index];
    sum.calls += static_cast<std::uint64_t>(value.calls.load(std::memory_order_acquire));
    sum.total += value.total.load(std::memory_order_acquire);
  }
  return sum;
}

}  // namespace signalbox
