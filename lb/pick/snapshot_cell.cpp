// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/snapshot_cell.hpp"

// An inlined read section costs a fifth of one that calls into liburcu. liburcu's header says that
// code of any licence may inline its read-side functions. Sanitizers and clang's analyzer get calls
// instead: ThreadSanitizer cannot see the library's half of the synchronisation, liburcu aligns a
// thread's record less than its type declares, and the analyzer does not know that a thread has a
// record.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang_analyzer__)
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include <utility>

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

// Tells ThreadSanitizer the one ordering that it cannot see: everything that a read section did
// happens before wait_for_readers() returns. It sees publication, because that is a store to an
// atomic pointer.
#if defined(__SANITIZE_THREAD__)
char grace_period;

void annotate_reader_gone() {
  __tsan_release(&grace_period);
}

void annotate_readers_waited_for() {
  __tsan_acquire(&grace_period);
}
#else
void annotate_reader_gone() {}

void annotate_readers_waited_for() {}
#endif

}  // namespace

void Snapshot::record_sessions() {
  if (selector != nullptr) sessions = SessionLead(selector->cookie(), picker.get());
}

SnapshotCell::SnapshotCell() : current_(new Snapshot) {}

SnapshotCell::~SnapshotCell() {
  wait_for_readers();
  delete current_.load(std::memory_order_acquire);
}

std::unique_ptr<const Snapshot> SnapshotCell::exchange(std::unique_ptr<const Snapshot> next) {
  SIGNALBOX_INVARIANT(next != nullptr, "a reader always finds a snapshot");
  return std::unique_ptr<const Snapshot>(
      current_.exchange(next.release(), std::memory_order_acq_rel));
}

void SnapshotCell::wait_for_readers() {
  SIGNALBOX_INVARIANT(urcu_bp_read_ongoing() == 0, "a reader never waits for itself");
  urcu_bp_synchronize_rcu();
  annotate_readers_waited_for();
}

SnapshotCell::Reader::Reader(const SnapshotCell& cell) {
  // A read section may begin with a barrier that later reads cannot overtake, so the snapshot is
  // prefetched before. A snapshot that is gone by then does no harm.
  const Snapshot* const expected = cell.current_.load(std::memory_order_relaxed);
  __builtin_prefetch(expected);
  __builtin_prefetch(reinterpret_cast<const char*>(expected) + kCacheLine);
  urcu_bp_read_lock();
  snapshot_ = cell.current_.load(std::memory_order_acquire);
}

SnapshotCell::Reader::~Reader() {
  annotate_reader_gone();
  urcu_bp_read_unlock();
}

}  // namespace signalbox::lb
