// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_reclaimer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace signalbox::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

void FakeReclaimer::retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) {
  if (ended_) {
    done();
    return;
  }
  const std::uint64_t number = first_number_ + snapshots_.size();
  snapshots_.push_back({std::move(old), std::move(done), next_reader_, true});
  const Duration delay = faults_.fires(Fault::kGraceSlow)
                             ? faults_.dice(Fault::kGraceSlow).between(Duration::zero(), seconds(3))
                             : chance_.between(Duration::zero(), milliseconds(20));
  clock_.after(delay, [this, number] { delay_over(number); });
}

// The object is kept until sweep(), because the caller may still use it.
void FakeReclaimer::retire(std::unique_ptr<const Tracked> object) {
  objects_.push_back(std::move(object));
}

std::uint64_t FakeReclaimer::begin_read() {
  readers_.insert(next_reader_);
  return next_reader_++;
}

void FakeReclaimer::end_read(std::uint64_t reader) {
  readers_.erase(reader);
  pass();
}

void FakeReclaimer::delay_over(std::uint64_t number) {
  if (number < first_number_ || number - first_number_ >= snapshots_.size()) return;
  snapshots_[number - first_number_].delayed = false;
  pass();
}

// Destroys snapshots in the order in which they were retired (R2 of actors/reclaimer.hpp). Stops at
// the first one that has a delay left, or that a reader may still see.
void FakeReclaimer::pass() {
  while (!snapshots_.empty()) {
    const Retired& oldest = snapshots_.front();
    const bool seen = !readers_.empty() && *readers_.begin() < oldest.readers_before;
    if (oldest.delayed || seen) return;
    Retired retired = std::move(snapshots_.front());
    snapshots_.pop_front();
    ++first_number_;
    retired.snapshot.reset();
    retired.done();
  }
}

void FakeReclaimer::sweep() {
  std::vector<std::unique_ptr<const Tracked>> looked_at;
  looked_at.swap(objects_);
  std::erase_if(looked_at, [](const auto& object) { return !object->in_use(); });
  objects_.insert(objects_.begin(),
                  std::make_move_iterator(looked_at.begin()),
                  std::make_move_iterator(looked_at.end()));
}

bool FakeReclaimer::is_pending(const lb::Snapshot* snapshot) const {
  return std::ranges::any_of(
      snapshots_, [&](const Retired& retired) { return retired.snapshot.get() == snapshot; });
}

void FakeReclaimer::end_world() {
  ended_ = true;
  readers_.clear();
  while (!snapshots_.empty()) {
    Retired retired = std::move(snapshots_.front());
    snapshots_.pop_front();
    ++first_number_;
  }
  while (!objects_.empty()) {
    std::vector<std::unique_ptr<const Tracked>> objects;
    objects.swap(objects_);
  }
}

}  // namespace signalbox::testing
