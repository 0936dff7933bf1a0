// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/snapshot_cell.hpp"

// _LGPL_SOURCE makes liburcu's read-side functions inline, because function calls would slow each
// pick down. liburcu's headers say of the three read-side functions used in this file that they are
// short enough for the LGPL to let any code inline them. For sanitizers and clang's analyzer the
// functions are not inline, because these tools would report false errors in the inline code.
// ThreadSanitizer would see only half of the synchronisation. Builds with AddressSanitizer also
// check alignment, and liburcu aligns a thread's record less than the record's type declares. The
// analyzer does not know that every thread has a record.
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

// Tells ThreadSanitizer that everything in a read section happens before wait_for_readers()
// returns. ThreadSanitizer cannot see this, because liburcu is not instrumented. A publication
// needs no such annotation, because it is a store to an atomic pointer.
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
  // urcu_bp_read_lock() may contain a memory barrier, which delays later reads. So the snapshot is
  // prefetched first. Another thread may have destroyed the snapshot; a prefetch of freed memory
  // does no harm.
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
