// SPDX-License-Identifier: Apache-2.0
//
// Reclaimer — destroys objects once no data-plane thread can read them any more.
//
//   channel actor ─▶ retire(old snapshot) ─▶ wait for readers ─▶ destroy ─▶ done()
//   shared_ptr deleter ─▶ retire(tracked)  ─▶ wait until unused ─▶ destroy
//
// Invariants
//   R1  While the runtime lives, the thread of its ReclaimerThread waits for the readers of
//       snapshots, never a thread that runs actors. The runtime joins that thread.
//   R2  While that thread lives, snapshots are destroyed in the order in which they were retired.

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

  /// Destroys `old` when no reader sees it, then calls `done`, which must not block. Does not block
  /// while the runtime's thread lives. After that thread's end, retire() itself waits for the
  /// readers (ReclaimerThread). With a null `old`, retire() waits for the present readers in the
  /// same way, then calls `done`.
  virtual void retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) = 0;
};

/// The reclaimer of a running runtime: one thread, which the destructor joins. The Reclaimer that
/// handle() returns may outlive this object. After the destructor, retire() of a snapshot waits for
/// readers itself. Objects that calls still use then pass to a thread of the process, which
/// destroys them when no call uses them any more. This thread lives while there are such objects.
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
