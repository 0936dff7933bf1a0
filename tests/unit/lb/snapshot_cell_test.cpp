// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/snapshot_cell.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kPoison = 0xdeaddeaddeaddeadULL;

// A picker with a generation. Its destructor overwrites the generation, so that the test notices a
// use of a destroyed picker.
class StampedPicker final : public Picker {
 public:
  explicit StampedPicker(Generation generation) : generation_(generation) {}

  ~StampedPicker() override { generation_ = kPoison; }

  PickResult pick(const PickArgs&) const override { return {}; }

  Generation generation() const { return generation_; }

 private:
  volatile Generation generation_;
};

std::unique_ptr<const Snapshot> stamped(Generation generation) {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->generation = generation;
  snapshot->sequence = generation;
  snapshot->picker = std::make_shared<StampedPicker>(generation);
  return snapshot;
}

Generation generation_of_picker(const Snapshot& snapshot) {
  return dynamic_cast<const StampedPicker&>(*snapshot.picker).generation();
}

TEST_CASE("snapshot_cell: shows an empty snapshot before the first publication",
          "[lb][snapshot_cell]") {
  const SnapshotCell cell;
  const SnapshotCell::Reader reader(cell);
  CHECK(reader->selector == nullptr);
  CHECK(reader->picker == nullptr);
  CHECK(reader->failure.ok());
  CHECK(reader->sequence == 0);
}

TEST_CASE("snapshot_cell: hands back what was published before", "[lb][snapshot_cell]") {
  SnapshotCell cell;
  CHECK(cell.exchange(stamped(1))->generation == 0);
  CHECK(cell.exchange(stamped(2))->generation == 1);
  CHECK(SnapshotCell::Reader(cell)->generation == 2);
  SnapshotCell::wait_for_readers();
}

TEST_CASE("snapshot_cell: a reader keeps what it saw, S1", "[lb][snapshot_cell]") {
  SnapshotCell cell;
  cell.exchange(stamped(1));
  std::unique_ptr<const Snapshot> old;
  std::atomic<bool> waited{false};
  std::thread reclaimer;
  {
    const SnapshotCell::Reader outer(cell);
    old = cell.exchange(stamped(2));
    reclaimer = std::thread([&] {
      SnapshotCell::wait_for_readers();
      waited = true;
      old.reset();
    });
    const SnapshotCell::Reader inner(cell);
    CHECK(generation_of_picker(*inner) == 2);
    for (int i = 0; i < 1'000; ++i)
      std::this_thread::yield();
    CHECK_FALSE(waited);
    CHECK(generation_of_picker(*outer) == 1);
  }
  reclaimer.join();
  CHECK(waited);
}

TEST_CASE("snapshot_cell: a reader that waits for readers is an error", "[lb][snapshot_cell]") {
  const SnapshotCell cell;
  const SnapshotCell::Reader reader(cell);
  CHECK_THROWS_AS(SnapshotCell::wait_for_readers(), BrokenInvariant);
}

TEST_CASE("snapshot_cell: destroys the last snapshot", "[lb][snapshot_cell]") {
  std::weak_ptr<const Picker> picker;
  {
    SnapshotCell cell;
    auto snapshot = stamped(1);
    picker = snapshot->picker;
    cell.exchange(std::move(snapshot));
  }
  CHECK(picker.expired());
}

TEST_CASE("snapshot_cell: readers see whole snapshots while they are replaced, S1",
          "[lb][snapshot_cell]") {
  constexpr Generation kPublications = 300;
  SnapshotCell cell;
  cell.exchange(stamped(1));
  std::atomic<bool> done{false};
  std::atomic<int> broken{0};
  std::atomic<std::uint64_t> reads{0};

  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      Generation newest = 0;
      do {
        const SnapshotCell::Reader snapshot(cell);
        const Generation generation = snapshot->generation;
        const bool whole = generation_of_picker(*snapshot) == generation &&
                           snapshot->sequence == generation && generation >= newest;
        if (!whole) ++broken;
        newest = generation;
        ++reads;
      } while (!done);
    });
  }
  for (Generation generation = 2; generation <= kPublications; ++generation) {
    const auto old = cell.exchange(stamped(generation));
    SnapshotCell::wait_for_readers();
  }
  done = true;
  for (std::thread& reader : readers)
    reader.join();

  CHECK(broken == 0);
  CHECK(reads >= 3);
  CHECK(SnapshotCell::Reader(cell)->generation == kPublications);
}

}  // namespace
}  // namespace signalbox::lb
