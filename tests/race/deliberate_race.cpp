// SPDX-License-Identifier: Apache-2.0
//
// deliberate_race — the snapshot cell and a Tracked object used with one mistake, for
// ThreadSanitizer.
//
//   deliberate_race none              what the runtime does: no report
//   deliberate_race free_early        the old snapshot is destroyed without waiting for readers
//   deliberate_race write_published   a snapshot is changed after it was published
//   deliberate_race destroy_used      an object is destroyed by a thread that has not asked whether
//                                     the object is in use
//
// ThreadSanitizer must report the last three although the cell has annotations. The threads take
// turns by relaxed atomics, which order no memory access. So an access that neither the cell nor
// the Tracked object orders is a race in every run, however long the pause between the threads.

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "lb/pick/snapshot_cell.hpp"
#include "messages/counting/tracked.hpp"

namespace signalbox {
namespace {

using lb::Snapshot;
using lb::SnapshotCell;

std::atomic<int> turn{0};

void wait_for_turn(int mine) {
  while (turn.load(std::memory_order_relaxed) < mine)
    std::this_thread::yield();
}

void end_turn() {
  turn.fetch_add(1, std::memory_order_relaxed);
}

std::unique_ptr<Snapshot> numbered(std::uint64_t sequence) {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->sequence = sequence;
  return snapshot;
}

// Runs `writer` after a reader has read the cell and has finished.
template <typename Writer>
void after_a_reader(const SnapshotCell& cell, const Writer& writer) {
  std::uint64_t seen = 0;
  std::thread reader([&] {
    seen = SnapshotCell::Reader(cell)->sequence;
    end_turn();
  });
  wait_for_turn(1);
  writer();
  reader.join();
  std::printf("read %llu\n", static_cast<unsigned long long>(seen));
}

void exchange_and_destroy(bool wait) {
  SnapshotCell cell;
  cell.exchange(numbered(1));
  after_a_reader(cell, [&] {
    const auto old = cell.exchange(numbered(2));
    if (wait) SnapshotCell::wait_for_readers();
  });
}

void write_published() {
  SnapshotCell cell;
  auto snapshot = numbered(1);
  Snapshot& published = *snapshot;
  cell.exchange(std::move(snapshot));
  after_a_reader(cell, [&] { published.sequence = 2; });
}

struct Cluster final : Tracked {
  int calls = 0;
};

// `ask`: calls in_use() before the destruction. This is correct: in_use() acquires the memory that
// the thread released when it destroyed the last Use (a holder of the object).
void destroy_tracked(bool ask) {
  auto cluster = std::make_unique<Cluster>();
  Use use(*cluster);
  std::thread call([held = std::move(use), object = cluster.get()]() mutable {
    ++object->calls;
    held = Use();
    end_turn();
  });
  wait_for_turn(1);
  while (ask && cluster->in_use())
    std::this_thread::yield();
  cluster.reset();
  call.join();
}

int run(const std::string& crime) {
  if (crime == "none") {
    exchange_and_destroy(/*wait=*/true);
    turn = 0;
    destroy_tracked(/*ask=*/true);
  } else if (crime == "free_early") {
    exchange_and_destroy(/*wait=*/false);
  } else if (crime == "write_published") {
    write_published();
  } else if (crime == "destroy_used") {
    destroy_tracked(/*ask=*/false);
  } else {
    std::fprintf(stderr, "usage: deliberate_race none|free_early|write_published|destroy_used\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace signalbox

int main(int argc, char** argv) {
  return signalbox::run(argc == 2 ? argv[1] : "");
}
