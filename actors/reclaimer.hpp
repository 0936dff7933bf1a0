// SPDX-License-Identifier: Apache-2.0
//
// Reclaimer — destroys objects once no data-plane thread can read them any more.
//
//   channel actor ─▶ retire(old snapshot) ─▶ wait for readers ─▶ destroy ─▶ done()
//   shared_ptr deleter ─▶ retire(tracked)  ─▶ wait until unused ─▶ destroy
//
// Invariants
//   R1  No scheduler thread waits for readers; a joinable thread of the runtime does.
//   R2  Snapshots are destroyed in the order in which they were retired.

#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "lb/pick/snapshot_cell.hpp"
#include "messages/counting/tracked.hpp"

namespace signalbox::actors {

class Reclaimer : public Retirement {
 public:
  using Retirement::retire;

  /// Destroys `old` when no reader sees it, then calls `done` (which must not block). Never blocks
  /// itself. With a null `old`, `done` follows the grace period.
  virtual void retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) = 0;
};

/// The reclaimer of a running runtime: one thread, joined by the destructor. The handle may outlive
/// it. retire() of a snapshot then waits for readers itself. A thread of the process then destroys
/// objects that calls still use; it lives while there are any.
class ReclaimerThread {
 public:
  ReclaimerThread();
  ~ReclaimerThread();
  ReclaimerThread(const ReclaimerThread&) = delete;
  ReclaimerThread& operator=(const ReclaimerThread&) = delete;

  std::shared_ptr<Reclaimer> handle() const;

 private:
  class Queue;
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace signalbox::actors
